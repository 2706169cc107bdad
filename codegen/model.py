"""The definitions as objects: messages, structures and fields, with names as Python writes them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codegen.versions import NONE, Versions

# Names that the generated classes or their bodies use themselves.
_TAKEN = {"bool", "bytes", "cls", "decode", "encode", "float", "int", "list", "reader", "self", "str"}
_TAKEN |= {"version", "writer"}
_PRIMITIVES = {"bool", "bytes", "float64", "int16", "int32", "int64", "int8", "records", "string", "uint16"}
_PRIMITIVES |= {"uuid"}


@dataclass
class Field:
    name: str
    type: str
    """Of one element, if it is an array: the name of a primitive or of a structure."""
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    flexible: Versions
    ignorable: bool
    default: str | None
    """As the definition says it; None if it says nothing."""

    @property
    def is_struct(self) -> bool:
        return self.type not in _PRIMITIVES

    @property
    def can_be_null(self) -> bool:
        return self.nullable != NONE

    @property
    def default_is_null(self) -> bool:
        if self.default is None:
            # Records are not there unless they are given, unlike every other type.
            return self.type == "records" and self.can_be_null
        return self.default == "null"


@dataclass
class Structure:
    name: str
    fields: list[Field]
    versions: Versions
    """Where it can occur, given the places that refer to it."""


@dataclass
class Message:
    name: str
    api_key: int
    versions: Versions
    flexible: Versions
    structures: dict[str, Structure] = field(default_factory=dict)
    """By name. Those inside others come first, the message itself comes last."""

    @property
    def module(self) -> str:
        return snake_case(self.name)


def snake_case(name: str) -> str:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.replace("KRaft", "Kraft"))
    return spaced.lower()


def parse_message(definition: Mapping[str, Any]) -> Message:
    versions = Versions.parse(definition["validVersions"])
    message = Message(
        name=definition["name"].replace("KRaft", "Kraft"),
        api_key=definition.get("apiKey", -1),
        versions=versions,
        flexible=Versions.parse(definition["flexibleVersions"]) & versions,
    )
    common = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    places: dict[str, tuple[Versions, list[Any]]] = {}
    _collect(places, message.name, definition["fields"], versions, common)
    for name, (where, fields) in places.items():
        parsed = [_parse_field(each, where, message.flexible) for each in fields]
        # A field that no valid version has is a memory of versions that Kafka removed.
        kept = [each for each in parsed if each.versions != NONE]
        message.structures[name] = Structure(name, kept, where)
    return message


def _collect(
    places: dict[str, tuple[Versions, list[Any]]],
    name: str,
    fields: list[Any],
    versions: Versions,
    common: Mapping[str, list[Any]],
) -> None:
    """Find every structure, its fields and the versions in which it can occur, which are those of all
    the places that refer to it."""
    for raw in fields:
        inner = raw["type"].removeprefix("[]")
        where = _field_versions(raw) & versions
        if inner not in _PRIMITIVES and where != NONE:
            _collect(places, inner, raw.get("fields") or common[inner], where, common)
    known = places.pop(name, (NONE, fields))[0]
    places[name] = (versions.union(known), fields)


def _field_versions(raw: Mapping[str, Any]) -> Versions:
    return Versions.parse(raw.get("versions") or raw["taggedVersions"])


def _parse_field(raw: Mapping[str, Any], within: Versions, flexible: Versions) -> Field:
    tagged = Versions.parse(raw.get("taggedVersions", "none")) & within
    versions = _field_versions(raw) & within
    if tagged not in (NONE, versions):
        raise ValueError(f"{raw['name']} is tagged in some of its versions only")
    name = snake_case(raw["name"])
    if keyword.iskeyword(name) or name in _TAKEN:
        name += "_"
    default = raw.get("default")
    if default is not None:
        # JSON null counts as saying nothing, as it does for Kafka's own generator; "null" means null.
        default = str(default)
    return Field(
        name=name,
        type=raw["type"].removeprefix("[]"),
        is_array=raw["type"].startswith("[]"),
        versions=versions,
        nullable=Versions.parse(raw.get("nullableVersions", "none")) & versions,
        tagged=tagged,
        tag=raw.get("tag", -1),
        flexible=Versions.parse(raw["flexibleVersions"]) if "flexibleVersions" in raw else flexible,
        ignorable=raw.get("ignorable", False),
        default=default,
    )

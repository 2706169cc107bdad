"""An Avro schema as values: every name resolved, nothing of JSON left. fastavro has said that it is valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))


@dataclass(frozen=True, slots=True)
class Primitive:
    name: str


@dataclass(frozen=True, slots=True)
class Array:
    items: Avro


@dataclass(frozen=True, slots=True)
class Map:
    values: Avro


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[Avro, ...]


@dataclass(slots=True, eq=False)
class Named:
    """A record, an enum or a fixed; compared by identity, because a record may hold itself."""

    name: str
    """In full, with its namespace."""
    aliases: tuple[str, ...]

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class Fixed(Named):
    size: int


@dataclass(slots=True, eq=False)
class Enum(Named):
    symbols: tuple[str, ...]
    has_default: bool


@dataclass(slots=True, eq=False)
class Field:
    name: str
    aliases: tuple[str, ...]
    type: Avro
    has_default: bool


@dataclass(slots=True, eq=False)
class Record(Named):
    fields: list[Field] = field(default_factory=list)


Avro = Primitive | Array | Map | Union | Fixed | Enum | Record


def build(parsed: Any, named: Mapping[str, Any]) -> Avro:
    """From what fastavro returns: full names, and each definition in place or in `named`."""
    return _Builder(named).build(parsed)


class _Builder:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._built: dict[str, Fixed | Enum | Record] = {}

    def build(self, schema: Any) -> Avro:
        if isinstance(schema, list):
            return Union(tuple(self.build(branch) for branch in schema))
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return Primitive(schema)
            if schema in self._built:
                return self._built[schema]
            return self.build(self._named[schema])
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.build(kind)
        if kind == "array":
            return Array(self.build(schema["items"]))
        if kind == "map":
            return Map(self.build(schema["values"]))
        if kind in ("record", "error", "enum", "fixed"):
            return self._named_type(kind, schema)
        return self.build(kind)

    def _named_type(self, kind: str, schema: Mapping[str, Any]) -> Avro:
        name = schema["name"]
        if name in self._built:
            return self._built[name]
        aliases = tuple(full_name(alias, name) for alias in schema.get("aliases", ()))
        made: Fixed | Enum | Record
        if kind == "fixed":
            made = self._built[name] = Fixed(name, aliases, schema["size"])
        elif kind == "enum":
            made = self._built[name] = Enum(name, aliases, tuple(schema["symbols"]), "default" in schema)
        else:
            made = record = self._built[name] = Record(name, aliases)
            for entry in schema["fields"]:
                record.fields.append(
                    Field(
                        entry["name"],
                        tuple(entry.get("aliases", ())),
                        self.build(entry["type"]),
                        "default" in entry,
                    )
                )
        return made


def full_name(alias: str, name: str) -> str:
    """An alias without a namespace is in that of the name it stands for."""
    namespace = name.rpartition(".")[0]
    return alias if "." in alias or not namespace else f"{namespace}.{alias}"

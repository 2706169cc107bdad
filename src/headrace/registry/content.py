"""What a schema is, before anybody has parsed it: its type, its text, and what it refers to."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from headrace.registry import errors


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Reference(NamedTuple):
    """`name` is what the schema calls it: a type in Avro, an address in JSON Schema, a file in Protobuf."""

    name: str
    subject: str
    version: int

    def document(self) -> dict[str, object]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Content:
    """Immutable, so that it is the key under which an id is found again."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    extras: str = "{}"
    """Metadata and rules of Confluent's data contracts, kept as they came: clients carry them out, not we."""

    @property
    def guid(self) -> str:
        """The same for the same schema in any registry, Confluent's too; clients may send it for an id.

        Only where metadata or rules are kept with the schema is it our own.
        """
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for name, subject, version in self.references:
            digest.update(name.encode() + subject.encode() + version.to_bytes(4, "big", signed=True))
        if self.extras != "{}":
            digest.update(self.extras.encode())
        return str(uuid.UUID(bytes=digest.digest()))

    def document(self) -> dict[str, Any]:
        """As clients see it and as it is stored. Avro is what is meant where no type is told."""
        document: dict[str, Any] = {}
        if self.type is not SchemaType.AVRO:
            document["schemaType"] = self.type.value
        if self.references:
            document["references"] = [reference.document() for reference in self.references]
        document.update(json.loads(self.extras))
        document["schema"] = self.text
        return document

    def inheriting(self, previous: Content) -> Content:
        """With the metadata and the rules of a previous version, where it says nothing of its own."""
        extras = {**json.loads(previous.extras), **json.loads(self.extras)}
        return dataclasses.replace(self, extras=_compact(extras))


def content_from(document: Mapping[str, Any]) -> Content:
    """Of a request or a stored record; RegistryError where it does not say what it must."""
    text = document.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise errors.invalid_schema("Empty schema")
    type_name = document.get("schemaType") or SchemaType.AVRO.value
    try:
        kind = SchemaType(type_name)
    except ValueError:
        raise errors.invalid_schema(
            f"Invalid schema type {type_name}; there are AVRO, JSON, PROTOBUF"
        ) from None
    references = tuple(_reference(entry) for entry in document.get("references") or ())
    extras = {name: document[name] for name in ("metadata", "ruleSet") if document.get(name) is not None}
    return Content(kind, text, references, _compact(extras))


def _compact(extras: Mapping[str, Any]) -> str:
    """In one form, so that equal extras are equal texts."""
    return json.dumps(extras, sort_keys=True, separators=(",", ":"))


def _reference(entry: object) -> Reference:
    if isinstance(entry, Mapping):
        name, subject, version = entry.get("name"), entry.get("subject"), entry.get("version")
        if isinstance(name, str) and isinstance(subject, str) and isinstance(version, int):
            return Reference(name, subject, version)
    raise errors.invalid_schema(f"a reference has a name, a subject and a version, not {entry!r}")

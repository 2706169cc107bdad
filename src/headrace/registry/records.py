"""The records of the `_schemas` topic, as Confluent's registry writes them: JSON keys, JSON values.

The bytes of a key decide what compaction keeps, so its members come in a fixed order and without spaces.
Of values the order does not matter. What is not known is passed over: a newer registry may have written it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.core.errors import HeadraceError
from headrace.registry.content import Content, content_from
from headrace.registry.errors import RegistryError


class SchemaKey(NamedTuple):
    subject: str
    version: int

    def encode(self) -> bytes:
        return _compact({"keytype": "SCHEMA", "subject": self.subject, "version": self.version, "magic": 1})


class SubjectKey(NamedTuple):
    """Of a setting or of the end of a subject. Without a subject it is the global setting."""

    kind: str
    subject: str | None

    def encode(self) -> bytes:
        document = {"keytype": self.kind, "subject": self.subject, "magic": 0}
        return _compact({name: value for name, value in document.items() if value is not None})


class NoopKey(NamedTuple):
    def encode(self) -> bytes:
        return _compact({"keytype": "NOOP", "magic": 0})


Key = SchemaKey | SubjectKey | NoopKey
CONFIG = "CONFIG"
MODE = "MODE"
DELETE_SUBJECT = "DELETE_SUBJECT"
CLEAR_SUBJECT = "CLEAR_SUBJECT"
_SUBJECT_KINDS = frozenset((CONFIG, MODE, DELETE_SUBJECT, CLEAR_SUBJECT))


class SchemaValue(NamedTuple):
    id: int
    content: Content
    deleted: bool = False


class Entry(NamedTuple):
    """One record. A value of None takes away what the key stands for."""

    key: Key
    value: SchemaValue | Mapping[str, Any] | None

    def encode(self) -> tuple[bytes, bytes | None]:
        if self.value is None:
            return self.key.encode(), None
        if isinstance(self.value, SchemaValue):
            return self.key.encode(), _compact(_schema_document(self.key, self.value))
        return self.key.encode(), _compact(dict(self.value))


class UnreadableRecord(HeadraceError):
    """A record of the topic that no registry can have written."""


def decode(key: bytes | None, value: bytes | None) -> Entry | None:
    """The entry; None for a kind that this registry does not know."""
    head = _object(key, "key")
    body = None if value is None else _object(value, "value")
    kind = head.get("keytype")
    subject = head.get("subject")
    if kind == "NOOP":
        return Entry(NoopKey(), body)
    if kind in _SUBJECT_KINDS and (subject is None or isinstance(subject, str)):
        return Entry(SubjectKey(kind, subject), body)
    if kind != "SCHEMA":
        return None
    version = head.get("version")
    if not isinstance(subject, str) or not isinstance(version, int):
        raise UnreadableRecord(f"a schema's key without subject and version: {key!r}")
    return Entry(SchemaKey(subject, version), None if body is None else _schema_value(body))


def _schema_value(body: Mapping[str, Any]) -> SchemaValue:
    number = body.get("id")
    if not isinstance(number, int):
        raise UnreadableRecord(f"a schema without an id: {body!r}")
    try:
        return SchemaValue(number, content_from(body), bool(body.get("deleted")))
    except RegistryError as error:
        raise UnreadableRecord(f"schema {number} cannot be read: {error}") from error


def _schema_document(key: Key, value: SchemaValue) -> dict[str, Any]:
    assert isinstance(key, SchemaKey)
    return {
        "subject": key.subject,
        "version": key.version,
        "id": value.id,
        **value.content.document(),
        "deleted": value.deleted,
    }


def _object(data: bytes | None, what: str) -> dict[str, Any]:
    try:
        document = json.loads(data or b"")
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UnreadableRecord(f"the {what} of a record is not a JSON object: {data!r}")
    return document


def _compact(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()

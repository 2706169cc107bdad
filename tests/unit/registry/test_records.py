"""The records of the topic: bytes as Confluent writes them, and back."""

from __future__ import annotations

import pytest

from headrace.registry.content import Content, Reference, SchemaType
from headrace.registry.records import (
    CONFIG,
    DELETE_SUBJECT,
    MODE,
    Entry,
    NoopKey,
    SchemaKey,
    SchemaValue,
    SubjectKey,
    UnreadableRecord,
    decode,
)

_CONTENT = Content(
    SchemaType.PROTOBUF, "message M {}", (Reference("a.proto", "a", 3),), '{"metadata":{"tags":["x"]}}'
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (SchemaKey("s", 1), b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'),
        (SchemaKey("\u00e4", 1), '{"keytype":"SCHEMA","subject":"\u00e4","version":1,"magic":1}'.encode()),
        (SubjectKey(CONFIG, None), b'{"keytype":"CONFIG","magic":0}'),
        (SubjectKey(CONFIG, "s"), b'{"keytype":"CONFIG","subject":"s","magic":0}'),
        (SubjectKey(MODE, "s"), b'{"keytype":"MODE","subject":"s","magic":0}'),
        (SubjectKey(DELETE_SUBJECT, "s"), b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}'),
        (NoopKey(), b'{"keytype":"NOOP","magic":0}'),
    ],
)
def test_keys_are_bytes_that_compaction_can_compare(
    key: SchemaKey | SubjectKey | NoopKey, expected: bytes
) -> None:
    assert key.encode() == expected
    assert decode(expected, None) == Entry(key, None)


@pytest.mark.parametrize(
    "entry",
    [
        Entry(SchemaKey("s", 2), SchemaValue(7, _CONTENT)),
        Entry(SchemaKey("s", 2), SchemaValue(7, Content(SchemaType.AVRO, '"int"'), deleted=True)),
        Entry(SubjectKey(CONFIG, "s"), {"subject": "s", "compatibilityLevel": "FULL"}),
        Entry(NoopKey(), {"highestId": 9}),
    ],
)
def test_what_is_written_is_read(entry: Entry) -> None:
    assert decode(*entry.encode()) == entry


def test_a_kind_that_is_not_known_is_passed_over() -> None:
    assert decode(b'{"keytype":"CONTEXT","context":".","magic":0}', b"{}") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"nothing", None),
        (b"[]", None),
        (b'{"keytype":"SCHEMA","subject":"s"}', None),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1,"schema":"x","schemaType":"XML"}'),
    ],
)
def test_what_no_registry_wrote(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(UnreadableRecord):
        decode(key, value)

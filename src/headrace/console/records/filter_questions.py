"""What a filter's process is asked, as bytes: the filter and the place as JSON, and each record."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from headrace.protocol.records import Record

_HEAD: Final = struct.Struct(">I")
_RECORD: Final = struct.Struct(">qqiiI")
"""Offset, timestamp, lengths of key and value, number of headers. A length of -1 stands for null."""
_HEADER: Final = struct.Struct(">ii")


class Question(NamedTuple):
    filter: str
    topic: str
    partition: int
    records: Sequence[Record]


def written(question: Question) -> bytes:
    head = json.dumps([question.filter, question.topic, question.partition]).encode()
    parts: list[bytes] = [_HEAD.pack(len(head)), head]
    for record in question.records:
        key, value, headers = record.key, record.value, record.headers
        parts.append(
            _RECORD.pack(record.offset, record.timestamp, _length(key), _length(value), len(headers))
        )
        parts += (key or b"", value or b"")
        for name, content in headers:
            own = name.encode("utf-8", "surrogateescape")
            parts += (_HEADER.pack(len(own), _length(content)), own, content or b"")
    return b"".join(parts)


def read(data: bytes) -> Question:
    (length,) = _HEAD.unpack_from(data)
    at = _HEAD.size + length
    text, topic, partition = json.loads(data[_HEAD.size : at])
    return Question(text, topic, partition, list(_records(data, at)))


def _records(data: bytes, at: int) -> Iterable[Record]:
    while at < len(data):
        offset, timestamp, key_length, value_length, count = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        key, at = _taken(data, at, key_length)
        value, at = _taken(data, at, value_length)
        headers = []
        for _ in range(count):
            name_length, content_length = _HEADER.unpack_from(data, at)
            name, at = _taken(data, at + _HEADER.size, name_length)
            content, at = _taken(data, at, content_length)
            headers.append(((name or b"").decode("utf-8", "surrogateescape"), content))
        yield Record(offset, timestamp, key, value, tuple(headers))


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _taken(data: bytes, at: int, length: int) -> tuple[bytes | None, int]:
    return (None, at) if length < 0 else (data[at : at + length], at + length)

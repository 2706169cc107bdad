"""The codec of `.snapshot` files: the producers that a log knew at an offset.

int16 version (1), uint32 crc32c over everything after it, int32 number of entries, entries:
int64 producer id, int16 epoch, int32 last sequence, int64 last offset, int32 offset delta of the last
batch, int64 timestamp, int32 coordinator epoch, int64 first offset of the open transaction (-1: none)
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from headrace.core.errors import ServerError

VERSION: Final = 1
_HEADER: Final = Struct(">hIi")
_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_FROM: Final = 6


class CorruptSnapshot(ServerError):
    """A snapshot that cannot be what was written. It is discarded and the log is read instead."""


class SnapshotEntry(NamedTuple):
    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


def encode(entries: Iterable[SnapshotEntry]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return _HEADER.pack(VERSION, crc32c(body), len(packed)) + body[4:]


def decode(content: bytes) -> list[SnapshotEntry]:
    if len(content) < _HEADER.size:
        raise CorruptSnapshot(f"{len(content)} bytes cannot hold a snapshot")
    version, crc, count = _HEADER.unpack_from(content)
    if version != VERSION:
        raise CorruptSnapshot(f"version {version}, only {VERSION} is known")
    if crc32c(content[_CRC_FROM:]) != crc:
        raise CorruptSnapshot("the checksum does not match")
    if len(content) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries announced in {len(content)} bytes")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(content[_HEADER.size :])]

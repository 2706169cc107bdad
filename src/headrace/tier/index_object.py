"""The object beside a segment's records: all that a reader, or a follower that begins there, needs of it.

    {"version":1,"offsets":240,"times":96,"transactions":34,"producers":51,"crc32c":"0a1b2c3d"}
    the parts one after the other, each as many bytes long; "producers" is null where it is not known

Offsets, times and transactions are in the form of Kafka's `.index`, `.timeindex` and `.txnindex`, relative to
where the object begins. One thing is not Kafka's: the transactions are all aborted ones that have records in
the segment, wherever their markers lie. They are known when it is uploaded, since everything in it is decided
by then, and whoever reads the segment need not look into those that follow.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from crc32c import crc32c

VERSION: Final = 1
_OFFSET: Final = Struct(">ii")
_TIME: Final = Struct(">qi")
_ABORTED: Final = Struct(">hqqqq")
_LARGEST_HEAD: Final = 1024


class CorruptIndexes(Exception):
    """Bytes that cannot be what was written."""


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Indexes(NamedTuple):
    base_offset: int
    offsets: Sequence[tuple[int, int]]
    """(offset of the last record of a batch, position of the batch), both ascending."""
    times: Sequence[tuple[int, int]]
    """(timestamp, offset), both ascending: no record before that offset is younger."""
    aborted: Sequence[Aborted]
    """Those with records in the segment."""
    producers: bytes | None
    """A snapshot of the producers as of the end of the segment, as it lies beside a log."""

    def position_before(self, offset: int) -> int:
        """Where a batch begins that lies at or before the one with this offset."""
        place = bisect_right(self.offsets, offset, key=_first) - 1
        return self.offsets[place][1] if place >= 0 else 0

    def offset_before(self, timestamp: int) -> int:
        """No batch before the one with this offset has a record of this time or later."""
        found = self.base_offset
        for known, offset in self.times:
            if known >= timestamp:
                break
            found = offset
        return found

    def aborted_within(self, first: int, until: int) -> list[tuple[int, int]]:
        """Producer and first offset of those that a reader of this range has to know."""
        return [
            (each.producer_id, each.first_offset)
            for each in self.aborted
            if each.last_offset >= first and each.first_offset < until
        ]


def _first(entry: tuple[int, int]) -> int:
    return entry[0]


def encode(indexes: Indexes) -> bytes:
    base = indexes.base_offset
    parts = [
        b"".join(_OFFSET.pack(offset - base, position) for offset, position in indexes.offsets),
        b"".join(_TIME.pack(timestamp, offset - base) for timestamp, offset in indexes.times),
        b"".join(_ABORTED.pack(0, *each) for each in indexes.aborted),
        indexes.producers or b"",
    ]
    body = b"".join(parts)
    head = {
        "version": VERSION,
        "offsets": len(parts[0]),
        "times": len(parts[1]),
        "transactions": len(parts[2]),
        "producers": None if indexes.producers is None else len(parts[3]),
        "crc32c": f"{crc32c(body):08x}",
    }
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + body


def decode(data: bytes, base_offset: int) -> Indexes:
    try:
        head, body = _split(data)
        sizes = [int(head[name]) for name in ("offsets", "times", "transactions")]
        producers = head["producers"]
        sizes.append(0 if producers is None else int(producers))
        if min(sizes) < 0 or sum(sizes) != len(body) or crc32c(body) != int(head["crc32c"], 16):
            raise CorruptIndexes("the checksum or the lengths do not match")
        ends = [sum(sizes[:count]) for count in range(1, 5)]
        offsets, times, aborted, snapshot = (
            body[end - size : end] for end, size in zip(ends, sizes, strict=True)
        )
        return Indexes(
            base_offset,
            [(base_offset + relative, position) for relative, position in _OFFSET.iter_unpack(offsets)],
            [(timestamp, base_offset + relative) for timestamp, relative in _TIME.iter_unpack(times)],
            [Aborted(*fields[1:]) for fields in _ABORTED.iter_unpack(aborted)],
            None if producers is None else snapshot,
        )
    except (KeyError, TypeError, ValueError, struct.error) as error:
        raise CorruptIndexes(f"not the indexes of a segment: {error}") from None


def _split(data: bytes) -> tuple[dict[str, Any], bytes]:
    end = data.find(b"\n", 0, _LARGEST_HEAD)
    if end < 0:
        raise CorruptIndexes("its first line is missing")
    head = json.loads(data[:end])
    if not isinstance(head, dict) or head.get("version") != VERSION:
        raise CorruptIndexes("another version than 1")
    return head, data[end + 1 :]

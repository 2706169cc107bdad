"""What becomes of one batch: it stays, it goes, some of its records stay, or only its header does.

A header keeps base offset, last offset, leader epoch, producer and sequence whatever becomes of the
records. Kept records are copied as bytes: their deltas stay true. Only a new delete horizon, which takes the
place of the base timestamp, makes their timestamps be written anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.config.values import LONG_MAX
from headrace.core.ports import Buffer
from headrace.protocol import batch as batches
from headrace.protocol import record_spans as spans
from headrace.protocol.batch import BatchHeader
from headrace.protocol.compression import Compression, compress
from headrace.protocol.records import open_batch, seal

NO_TIMESTAMP: Final = -1


class Opened(NamedTuple):
    """A data batch whose records were looked at."""

    header: BatchHeader
    body: bytes
    keys: list[bytes | None]
    deltas: list[int] | None
    """None: 0, 1, 2 and so on."""
    has_tombstones: bool

    def delta(self, place: int) -> int:
        return place if self.deltas is None else self.deltas[place]


def open_keys(batch: Buffer) -> Opened:
    """Raises a ClientError if the records cannot be read."""
    header, body = open_batch(batch)
    return Opened(header, body, *spans.read_keys(body, header.record_count, header.last_offset_delta))


def delete_horizon(header: BatchHeader) -> int | None:
    """Until when the tombstones, or the marker, of this batch are kept; None if nobody has decided yet."""
    return header.base_timestamp if header.attributes & batches.DELETE_HORIZON_FLAG else None


def empty_batch(header: BatchHeader) -> bytearray:
    """The header alone, for what it says of offsets and of its producer."""
    dropped = batches.COMPRESSION_MASK | batches.DELETE_HORIZON_FLAG
    return seal(
        header._replace(attributes=header.attributes & ~dropped, base_timestamp=NO_TIMESTAMP, record_count=0),
        b"",
    )


def with_records(
    header: BatchHeader,
    body: bytes,
    kept: Sequence[int],
    levels: dict[int, int],
    *,
    horizon_ms: int | None = None,
) -> bytearray:
    """The batch with only the records at the places `kept`, at least one, and a delete horizon if given."""
    bounds = spans.read_bounds(body, header.record_count)
    starts = [bounds[place] for place in kept]
    rest = body if len(kept) == header.record_count else _joined(body, bounds, kept)
    changed = header._replace(record_count=len(kept))
    if not header.is_log_append_time:
        largest = spans.largest_timestamp(body, starts, header.base_timestamp)
        if largest <= LONG_MAX:  # else its producer wrote nonsense, and the header's own is as good
            changed = changed._replace(max_timestamp=largest)
    if horizon_ms is not None:
        rest = spans.move_base_timestamp(
            rest, spans.read_bounds(rest, len(kept)), horizon_ms - header.base_timestamp
        )
        changed = changed._replace(
            base_timestamp=horizon_ms, attributes=header.attributes | batches.DELETE_HORIZON_FLAG
        )
    codec = header.compression
    return seal(changed, rest if codec == Compression.NONE else compress(codec, rest, levels.get(codec)))


def _joined(body: bytes, bounds: Sequence[int], kept: Sequence[int]) -> bytes:
    """The records at `kept`; neighbours are copied together."""
    parts = []
    begin = before = kept[0]
    for place in kept[1:]:
        if place != before + 1:
            parts.append(body[bounds[begin] : bounds[before + 1]])
            begin = place
        before = place
    parts.append(body[bounds[begin] : bounds[before + 1]])
    return b"".join(parts)

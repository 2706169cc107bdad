"""Reading a segment file from one end to the other: its batches, and the records inside them.

Look-ups by time, `headrace log dump`, the cleaner and whoever reads sealed segments without a broker come
here. Nothing is kept of a file but one chunk. The checksum is the caller's business: `protocol.batch.check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.core.errors import CorruptLog
from headrace.core.ports import Buffer, File
from headrace.log.scan import Readable
from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, MIN_BATCH_LENGTH, BatchHeader, read_header
from headrace.protocol.records import Record, decode_records

CHUNK_BYTES: Final = 1 << 20
NO_LIMIT: Final = 1 << 63


def batches(
    file: Readable,
    position: int,
    end: int,
    *,
    least: int = 0,
    below: int = NO_LIMIT,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """(position, header, bytes) of each batch. CorruptLog if a length cannot be, or an offset: they ascend
    from `least` on, and stay `below`. That is no luxury where the checksum is looked at: it covers neither.

    The bytes are a window into a chunk, which stays in memory for as long as the window is held.
    """
    chunk, chunk_at = memoryview(b""), position
    while end - position >= HEADER_SIZE:
        at = position - chunk_at
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_at, at = _read(file, position, min(chunk_bytes, end - position)), position, 0
        header = read_header(chunk, at)
        size = header[1] + LOG_OVERHEAD
        if header[1] < MIN_BATCH_LENGTH or size > end - position:
            raise CorruptLog(f"batch length {header[1]} at position {position}")
        if at + size > len(chunk):
            wanted = min(max(chunk_bytes, size), end - position)
            chunk, chunk_at, at = _read(file, position, wanted), position, 0
        if not least <= header.base_offset <= header.last_offset < below:
            raise CorruptLog(f"offset {header.base_offset} at position {position}, {least} is the least")
        least = header.last_offset + 1
        yield position, header, chunk[at : at + size]
        position += size
    if position != end:
        raise CorruptLog(f"{end - position} bytes at position {position} are no batch")


def _read(file: Readable, position: int, length: int) -> memoryview:
    data = file.pread(length, position)
    if len(data) != length:
        raise CorruptLog(
            f"the segment ends at {position + len(data)}, {position + length} bytes were written"
        )
    return memoryview(data)


def records_in(batch: Buffer, at: int = 0) -> Iterator[Record]:
    """The records of the batch that begins at `at`. ClientError where they are broken."""
    return decode_records(batch, at)


def records_at(file: File, position: int, header: BatchHeader) -> Iterator[Record]:
    """The records of the batch at `position` of a file, whose header is known."""
    return records_in(file.pread(header.size, position))


def records(file: File, position: int, end: int, *, from_offset: int = 0) -> Iterator[Record]:
    """Every record of a range of whole batches from `from_offset` on, without those of control batches.

    Raises CorruptLog for a broken batch and ClientError for broken records; what came before has been given.
    """
    for _, header, batch in batches(file, position, end):
        if header.is_control or header.last_offset < from_offset:
            continue
        for record in records_in(batch):
            if record.offset >= from_offset:
                yield record

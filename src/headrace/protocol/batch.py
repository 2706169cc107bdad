"""The header of a record batch (magic 2), and the few bytes of it that a broker may write.

    0 base offset (8)            27 base timestamp (8)
    8 batch length (4)           35 max timestamp (8)
   12 partition leader epoch (4) 43 producer id (8)
   16 magic (1)                  51 producer epoch (2)
   17 crc32c (4)                 53 base sequence (4)
   21 attributes (2)             57 record count (4)
   23 last offset delta (4)      61 records...

The checksum covers everything from the attributes on, so base offset and leader epoch can be
assigned without touching it. The records stay opaque: nothing here opens them.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from headrace.core.errors import CorruptBatch
from headrace.core.ports import Buffer

_HEADER: Final = Struct(">qiibIhiqqqhii")
_OFFSET_LENGTH: Final = Struct(">qi")
_ASSIGN: Final = Struct(">qii")  # base offset, length (unchanged), leader epoch
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
_MAX_TIMESTAMP: Final = Struct(">q")

MAGIC: Final = 2
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Bytes before those that `batch length` counts."""
CRC_FROM: Final = 21
MIN_BATCH_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40


_new: Final = tuple.__new__
"""What `_make` does, without its length check: `unpack_from` gives exactly these fields."""


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes on the wire and on disk."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from 2^31-1 to 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0


def read_header(data: Buffer, at: int = 0) -> BatchHeader:
    """The header at `at`; the caller knows that HEADER_SIZE bytes are there. Checks nothing."""
    return BatchHeader._make(_HEADER.unpack_from(data, at))


def check(data: Buffer, at: int = 0, end: int | None = None) -> BatchHeader:
    """The header of the batch that begins at `at` and must lie whole before `end`.

    Verifies length, magic, checksum and that counts agree. Raises CorruptBatch.
    """
    limit = len(data) if end is None else end
    if limit - at < HEADER_SIZE:
        raise CorruptBatch(f"{limit - at} bytes cannot hold a batch header of {HEADER_SIZE}")
    header: BatchHeader = _new(BatchHeader, _HEADER.unpack_from(data, at))
    size = header[1] + LOG_OVERHEAD
    if header[1] < MIN_BATCH_LENGTH or size > limit - at:
        raise CorruptBatch(f"batch length {header[1]} does not fit the {limit - at} bytes that are there")
    if header[3] != MAGIC:
        raise CorruptBatch(f"magic {header[3]}: only batches of magic 2 are taken")
    view = data if type(data) is memoryview else memoryview(data)
    actual = crc32c(view[at + CRC_FROM : at + size])
    if actual != header[4]:
        raise CorruptBatch(f"checksum is {actual:#010x}, the batch says {header[4]:#010x}")
    if header[6] < 0 or header[12] < 0 or header[12] > header[6] + 1:
        raise CorruptBatch(f"{header[12]} records with last offset delta {header[6]}")
    return header


def assign(batch: bytearray | memoryview, at: int, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch: the only bytes that lie outside the checksum."""
    length = _OFFSET_LENGTH.unpack_from(batch, at)[1]
    _ASSIGN.pack_into(batch, at, base_offset, length, leader_epoch)


def stamp_log_append_time(batch: bytearray | memoryview, at: int, size: int, now_ms: int) -> None:
    """Make `now_ms` the time of every record, as message.timestamp.type=LogAppendTime asks."""
    attributes = _ATTRIBUTES.unpack_from(batch, at + 21)[0] | LOG_APPEND_TIME_FLAG
    _ATTRIBUTES.pack_into(batch, at + 21, attributes)
    _MAX_TIMESTAMP.pack_into(batch, at + 35, now_ms)
    reseal(batch, at, size)


def reseal(batch: bytearray | memoryview, at: int, size: int) -> None:
    """Recompute the checksum after a change of the bytes that it covers."""
    with memoryview(batch) as view:
        crc = crc32c(view[at + CRC_FROM : at + size])
    _CRC.pack_into(batch, at + 17, crc)


def iterate(data: Buffer, at: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch; a tail that is cut off ends the iteration in silence.

    Does not verify checksums: for bytes that were checked when they were stored.
    """
    limit = len(data) if end is None else end
    while limit - at >= HEADER_SIZE:
        header = read_header(data, at)
        if header.batch_length < MIN_BATCH_LENGTH:
            raise CorruptBatch(f"batch length {header.batch_length} at position {at}")
        if header.size > limit - at:
            return
        yield at, header
        at += header.size

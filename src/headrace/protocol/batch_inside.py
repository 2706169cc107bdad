"""How far the inside of a producer's batch is looked at before it is believed.

A batch with a good checksum can hold anything, and whatever is stored is what consumers get: librdkafka stops
at the first batch that it cannot read, for good and without an error. To read every record would cost more
than the rest of the way of a record. So the first record is read, which noise does not survive, and what
the header claims is compared with what its bytes can hold.

Among the modules that can be compiled (hatch_build.py).
"""

from __future__ import annotations

from typing import Final

from headrace.core.errors import InvalidRecord
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.compression import DEFAULT_MAX_BYTES, MAX_RATIO, RATIO_FREE_BYTES, Compression
from headrace.protocol.record_spans import MIN_RECORD_BYTES

_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_LZ4_MAX_RATIO: Final = 255
_SNAPPY_MAX_RATIO: Final = 24
_GZIP_MAX_RATIO: Final = 1032
_ROOM_FOR_FRAMES: Final = 64
_GZIP: Final = int(Compression.GZIP)
_LZ4: Final = int(Compression.LZ4)
_ZSTD: Final = int(Compression.ZSTD)


def check_inside(batch: bytearray | memoryview, codec: int, count: int) -> None:
    """Raises InvalidRecord if `batch`, which is whole, cannot hold `count` records."""
    if codec == 0:
        if count * MIN_RECORD_BYTES > len(batch) - HEADER_SIZE:
            raise InvalidRecord(f"{count} records cannot be in {len(batch) - HEADER_SIZE} bytes")
        try:
            _read_first(batch, count, len(batch))
        except IndexError:
            raise InvalidRecord("a record runs past the end of its batch") from None
    else:
        _check_compressed(batch, codec, count)


def _read_first(batch: bytearray | memoryview, count: int, limit: int) -> None:
    """It has its length and its number in it: noise looks like a record once in a hundred thousand cases."""
    # Varints of one byte are written out: they are nearly all, and a call costs more.
    at = HEADER_SIZE
    size = batch[at]
    if size < 0x80:
        at += 1
    else:
        size, at = _varint(batch, at)
    end = at + (size >> 1)
    if size & 1 or end > limit:
        raise InvalidRecord(f"the first record ends at byte {end} of {limit}")
    at += 1  # attributes
    if batch[at] < 0x80:
        at += 1
    else:
        at = _varint(batch, at)[1]
    if batch[at] != 0:
        raise InvalidRecord("the first record of a batch has offset delta 0")
    at += 1
    for _ in range(2):  # key and value
        size = batch[at]
        if size < 0x80:
            at += 1
        else:
            size, at = _varint(batch, at)
        if size & 1:
            if size != 1:
                raise InvalidRecord("the first record has a field of a negative length")
        else:
            at += size >> 1
        if at >= end:
            raise InvalidRecord("the first record is shorter than what it holds")
    if batch[at] == 0:
        at += 1
    else:
        at = _behind_headers(batch, at, end)
    if at != end:
        raise InvalidRecord(f"the first record ends at byte {at}, its length says {end}")
    if count == 1 and at != limit:
        raise InvalidRecord(f"{limit - at} bytes follow the only record of the batch")


def _behind_headers(batch: bytearray | memoryview, at: int, end: int) -> int:
    count, at = _varint(batch, at)
    if count & 1 or count >> 1 > end - at:
        raise InvalidRecord(f"{count >> 1} headers in {end - at} bytes")
    for _ in range(count >> 1):
        for is_value in (False, True):
            size, at = _varint(batch, at)
            if size & 1:
                if size != 1 or not is_value:
                    raise InvalidRecord("a header has a field of a negative length")
            else:
                at += size >> 1
            if at > end:
                raise InvalidRecord("a header runs past the end of its record")
    return at


def _varint(batch: bytearray | memoryview, at: int) -> tuple[int, int]:
    """Before its zig-zag is undone, and where it ends."""
    raw = 0
    for shift in range(0, 70, 7):
        byte = batch[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, at
    raise InvalidRecord("a varint of more than 10 bytes")


def _check_compressed(batch: bytearray | memoryview, codec: int, count: int) -> None:
    """What the beginning says, and what so many bytes can become at most. Nothing is decompressed."""
    head = bytes(batch[HEADER_SIZE : HEADER_SIZE + 24])
    size = len(batch) - HEADER_SIZE
    if codec == _GZIP:
        looks_right, most = head.startswith(_GZIP_MAGIC), size * _GZIP_MAX_RATIO
    elif codec == _LZ4:
        looks_right, most = head.startswith(_LZ4_MAGIC), size * _LZ4_MAX_RATIO
    elif codec == _ZSTD:
        looks_right, most = head.startswith(_ZSTD_MAGIC), max(RATIO_FREE_BYTES, size * MAX_RATIO)
    else:
        looks_right, most = True, size * _SNAPPY_MAX_RATIO
        if not head.startswith(_XERIAL_MAGIC):
            try:
                declared, _ = _varint(memoryview(head), 0)
            except IndexError:
                declared = -1
            looks_right, most = 0 < declared <= most, declared
    if not looks_right:
        raise InvalidRecord(f"the records are not compressed by {Compression(codec).name.lower()}")
    if count * MIN_RECORD_BYTES > min(most + _ROOM_FOR_FRAMES, DEFAULT_MAX_BYTES):
        raise InvalidRecord(f"{count} records cannot be in {size} bytes of {Compression(codec).name.lower()}")

"""The records inside a batch of magic 2: read them, write them.

A record is a varint length, then attributes (1 byte, unused), timestamp delta (varlong), offset delta
(varint), key and value (each a varint length, -1 for null, and its bytes), and headers (a varint count; each
is the length of its key, the key, the length of its value or -1, the value).
All varints are zig-zag. The brokers' hot paths never come here; clients, compaction and tools do.

No number read from a batch is trusted: each is compared with the bytes that remain before it is used.
`decode_records` does not look at the checksum. Bytes from outside go through `batch.check` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from headrace.core.errors import CorruptBatch, InvalidRecord
from headrace.core.ports import Buffer
from headrace.protocol import batch as batches
from headrace.protocol.compression import DEFAULT_MAX_BYTES, Compression, compress, decompress

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record as it is read. Header keys that are not UTF-8 keep their bytes as surrogates."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class NewRecord(NamedTuple):
    """One record to be written; its place in the sequence gives its offset."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = -1
    headers: Headers = ()


_HEADER: Final = Struct(">qiibIhiqqqhii")
_MIN_RECORD_BYTES: Final = 7
_MIN_HEADER_BYTES: Final = 2
_MAX_INT32: Final = 0x7FFFFFFF
_MIN_INT32: Final = -0x80000000
_NO_HEADERS: Final[Headers] = ()
_ONE_BYTE: Final = tuple(bytes((n,)) for n in range(128))
"""Varints of one byte, by their zig-zag value."""


def decode_records(batch: Buffer, at: int = 0, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Iterator[Record]:
    """Each record of the batch that begins at `at`, in order.

    Raises CorruptBatch where the batch or its compression is cut off or broken, InvalidRecord where what is
    inside does not agree with itself. Records before the fault have been yielded by then.
    """
    header, body = open_batch(batch, at, max_bytes=max_bytes)
    return decode_body(header, body)


def open_batch(
    batch: Buffer, at: int = 0, *, max_bytes: int = DEFAULT_MAX_BYTES
) -> tuple[batches.BatchHeader, bytes]:
    """The header, and the records as bytes without their compression."""
    if len(batch) - at < batches.HEADER_SIZE:
        raise CorruptBatch(f"{len(batch) - at} bytes cannot hold a batch header of {batches.HEADER_SIZE}")
    header = batches.read_header(batch, at)
    if header.magic != batches.MAGIC:
        raise CorruptBatch(f"magic {header.magic}: only batches of magic 2 are read")
    if header.batch_length < batches.MIN_BATCH_LENGTH or header.size > len(batch) - at:
        raise CorruptBatch(
            f"batch length {header.batch_length} does not fit the {len(batch) - at} bytes there"
        )
    with memoryview(batch) as view, view[at + batches.HEADER_SIZE : at + header.size] as payload:
        body = decompress(header.compression, payload, max_bytes)
    if len(body) > max_bytes:
        raise InvalidRecord(f"the batch holds {len(body)} bytes of records, more than {max_bytes}")
    return header, body


def decode_body(header: batches.BatchHeader, data: bytes) -> Iterator[Record]:
    limit = len(data)
    count = header.record_count
    if count < 0 or count * _MIN_RECORD_BYTES > limit:
        raise InvalidRecord(f"{count} records cannot be in {limit} bytes")
    base_offset = header.base_offset
    append_time = header.max_timestamp if header.is_log_append_time else None
    base_timestamp = header.base_timestamp
    last_delta = header.last_offset_delta
    previous_delta = -1
    position = 0
    make = Record
    try:
        for _ in range(count):
            # The one-byte case of each varint is written out: it is nearly all of them; a call costs more.
            byte = data[position]
            if byte < 0x80:
                length = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                length, position = _read_varint(data, position)
            end = position + length
            if length < _MIN_RECORD_BYTES - 1 or end > limit:
                raise InvalidRecord(f"a record of {length} bytes where {limit - position} remain")
            position += 1  # attributes
            byte = data[position]
            if byte < 0x80:
                timestamp_delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                timestamp_delta, position = _read_varlong(data, position)
            byte = data[position]
            if byte < 0x80:
                offset_delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                offset_delta, position = _read_varint(data, position)
            if not previous_delta < offset_delta <= last_delta:
                raise InvalidRecord(
                    f"offset delta {offset_delta} after {previous_delta}, the last is {last_delta}"
                )
            previous_delta = offset_delta
            key, position = _read_nullable(data, position, end)
            value, position = _read_nullable(data, position, end)
            byte = data[position]
            if byte == 0:
                headers = _NO_HEADERS
                position += 1
            else:
                headers, position = _read_headers(data, position, end)
            if position != end:
                raise InvalidRecord(f"a record ends at byte {position}, its length says {end}")
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            yield make(base_offset + offset_delta, timestamp, key, value, headers)
    except IndexError:
        raise InvalidRecord(f"a record runs past the end of its batch at byte {position}") from None
    if position != limit:
        raise InvalidRecord(f"{limit - position} bytes follow the {count} records of the batch")


def _read_nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length = data[position]
    if length == 1:  # zig-zag of -1
        return None, position + 1
    if length < 0x80:
        length = (length >> 1) ^ -(length & 1)
        position += 1
    else:
        length, position = _read_varint(data, position)
    stop = position + length
    if length < 0:
        if length == -1:
            return None, position
        raise InvalidRecord(f"a field of {length} bytes")
    if stop > end:
        raise InvalidRecord(f"a field of {length} bytes where {end - position} remain")
    return data[position:stop], stop


def _read_headers(data: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = _read_varint(data, position)
    if count < 0 or count * _MIN_HEADER_BYTES > end - position:
        raise InvalidRecord(f"{count} headers cannot be in {end - position} bytes")
    headers = []
    for _ in range(count):
        key, position = _read_nullable(data, position, end)
        if key is None:
            raise InvalidRecord("a header without a key")
        value, position = _read_nullable(data, position, end)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value, position = _read_varlong(data, position, 5)
    if not _MIN_INT32 <= value <= _MAX_INT32:
        raise InvalidRecord(f"a varint of {value} does not fit 32 bits")
    return value, position


def _read_varlong(data: bytes, position: int, max_length: int = 10) -> tuple[int, int]:
    """IndexError at the end of the data: the caller says what that means."""
    raw = 0
    for shift in range(0, 7 * max_length, 7):
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> 64:
                raise InvalidRecord("a varlong does not fit 64 bits")
            return (raw >> 1) ^ -(raw & 1), position
    raise InvalidRecord(f"a varint of more than {max_length} bytes")


def encode_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    compression: int = Compression.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    leader_epoch: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time: bool = False,
) -> bytearray:
    """One batch, sealed. The offset of a record is `base_offset` plus its index."""
    if not records:
        raise ValueError("a batch holds at least one record")
    attributes = int(compression)
    if log_append_time:
        attributes |= batches.LOG_APPEND_TIME_FLAG
    if transactional:
        attributes |= batches.TRANSACTIONAL_FLAG
    if control:
        attributes |= batches.CONTROL_FLAG
    base_timestamp = max_timestamp = records[0].timestamp
    body = bytearray(batches.HEADER_SIZE)
    varint = _varint
    for index, (value, key, timestamp, headers) in enumerate(records):
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        start = b"\x00" + varint(timestamp - base_timestamp) + varint(index)
        keyed = b"\x01" if key is None else varint(len(key)) + key
        valued = b"\x01" if value is None else varint(len(value)) + value
        end = _headers(headers) if headers else b"\x00"
        body += varint(len(start) + len(keyed) + len(valued) + len(end))
        body += start + keyed + valued + end
    if compression != Compression.NONE:
        body[batches.HEADER_SIZE :] = compress(compression, bytes(body[batches.HEADER_SIZE :]), level)
    size, count = len(body), len(records)
    _HEADER.pack_into(
        body, 0, base_offset, size - batches.LOG_OVERHEAD, leader_epoch, batches.MAGIC, 0, attributes,
        count - 1, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    batches.reseal(body, 0, size)
    return body


def rebuild_batch(
    header: batches.BatchHeader,
    records: Sequence[Record],
    *,
    compression: int | None = None,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """The batch of `header` with only `records` left in it, as compaction writes it.

    Base offset, last offset, sequence and producer stay, so that offsets and idempotence are not disturbed.
    With a delete horizon, that time takes the place of the base timestamp, as the format has it.
    """
    codec = header.compression if compression is None else int(compression)
    if not records:
        codec = Compression.NONE  # only the header stays, and nothing is there to open
    attributes = (header.attributes & ~batches.COMPRESSION_MASK) | codec
    base_timestamp = header.base_timestamp
    if delete_horizon_ms is not None:
        attributes |= batches.DELETE_HORIZON_FLAG
        base_timestamp = delete_horizon_ms
    body = _encode_body(
        (record.offset - header.base_offset, record.timestamp - base_timestamp, *record[2:])
        for record in records
    )
    max_timestamp = header.max_timestamp
    if records and not header.is_log_append_time:
        max_timestamp = max(record.timestamp for record in records)
    changed = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(records),
    )
    return seal(changed, compress(codec, body, level))


def recompress(
    batch: Buffer, codec: int, level: int | None = None, *, at: int = 0, max_bytes: int = DEFAULT_MAX_BYTES
) -> bytearray:
    """The same batch under another codec. The records are opened but not decoded: InvalidRecord only if they
    are more than `max_bytes`."""
    header, body = open_batch(batch, at, max_bytes=max_bytes)
    attributes = (header.attributes & ~batches.COMPRESSION_MASK) | int(codec)
    return seal(header._replace(attributes=attributes), compress(codec, body, level))


def seal(header: batches.BatchHeader, payload: Buffer) -> bytearray:
    """The batch of `header` around `payload`, with its length and checksum made right."""
    size = batches.HEADER_SIZE + len(payload)
    out = bytearray(size)
    out[batches.HEADER_SIZE :] = payload
    _HEADER.pack_into(out, 0, *header._replace(batch_length=size - batches.LOG_OVERHEAD, crc=0))
    batches.reseal(out, 0, size)
    return out


def _encode_body(fields: Iterable[tuple[int, int, bytes | None, bytes | None, Headers]]) -> bytearray:
    """`fields` are (offset delta, timestamp delta, key, value, headers)."""
    out = bytearray()
    varint = _varint
    for offset_delta, timestamp_delta, key, value, headers in fields:
        record = b"".join(
            (
                b"\x00",
                varint(timestamp_delta),
                varint(offset_delta),
                b"\x01" if key is None else varint(len(key)),
                key or b"",
                b"\x01" if value is None else varint(len(value)),
                value or b"",
                _headers(headers) if headers else b"\x00",
            )
        )
        out += varint(len(record))
        out += record
    return out


def _headers(headers: Headers) -> bytes:
    parts = [_varint(len(headers))]
    for name, value in headers:
        key = name.encode("utf-8", "surrogateescape")
        parts += (_varint(len(key)), key)
        parts += (b"\x01",) if value is None else (_varint(len(value)), value)
    return b"".join(parts)


def _varint(number: int) -> bytes:
    """Zig-zag, seven bits a byte, lowest first; for varints and varlongs alike."""
    raw = (number << 1) ^ (number >> 63)
    if raw < 0x80:
        return _ONE_BYTE[raw]
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)

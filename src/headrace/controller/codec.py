"""Metadata records as bytes: Kafka's frame, many records to a batch.

A record's value is an unsigned varint each for the frame's version (1), the record's kind and its
version, then the message; the key is null. Kafka's own tools decode it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from headrace.controller.features import record_version
from headrace.controller.operations import RecordGroup
from headrace.controller.replay import KNOWN_RECORDS
from headrace.core.errors import CorruptLog, HeadraceError
from headrace.core.ports import Buffer
from headrace.protocol.compression import Compression, compress
from headrace.protocol.message import Message
from headrace.protocol.primitives import Reader, Writer
from headrace.protocol.records import NewRecord, decode_records, encode_batch
from headrace.protocol.stored.begin_transaction_record import BeginTransactionRecord
from headrace.protocol.stored.end_transaction_record import EndTransactionRecord

FRAME_VERSION: Final = 1
MAX_BATCH_BYTES: Final = 448 * 1024
"""Of record values in one batch; with what surrounds each record a batch stays under 512 KB."""
COMPRESSED_FROM: Final = 64 * 1024
"""A batch with more than this in it is compressed. Rows that a lost broker changes are much alike and become
a seventh: its loss is one write to the coordination service, however many partitions it had."""
MOST_COMPRESSED: Final = 16 * 1024 * 1024
"""Of record values in a batch that fits into its limit only because it is compressed."""
_RECORD_OVERHEAD: Final = 16
"""At most this much around a record's value: lengths, deltas, null key, no headers."""

_BY_KIND: Final[dict[int, type[Message]]] = {kind.API_KEY: kind for kind in KNOWN_RECORDS}


class Payload(NamedTuple):
    """The records of one batch, encoded."""

    values: list[bytes]
    records: list[Message]


def encode_record(record: Message) -> bytes:
    version = record_version(record)
    writer = Writer()
    writer.unsigned_varint(FRAME_VERSION)
    writer.unsigned_varint(record.API_KEY)
    writer.unsigned_varint(version)
    record.encode(writer, version)
    return writer.getvalue()


def decode_record(value: Buffer) -> Message:
    reader = Reader(memoryview(value))
    frame, kind, version = reader.unsigned_varint(), reader.unsigned_varint(), reader.unsigned_varint()
    if frame != FRAME_VERSION:
        raise CorruptLog(f"a metadata record with frame version {frame}; this version reads {FRAME_VERSION}")
    cls = _BY_KIND.get(kind)
    if cls is None or not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise CorruptLog(
            f"a metadata record of kind {kind}, version {version}, was written by a newer version"
        )
    record = cls.decode(reader, version)
    reader.finish()
    return record


def encode_metadata_batch(
    values: Sequence[bytes], *, base_offset: int, controller_epoch: int, timestamp_ms: int
) -> bytes:
    records = [NewRecord(value, None, timestamp_ms) for value in values]
    large = sum(map(len, values)) > COMPRESSED_FROM
    return bytes(
        encode_batch(
            records,
            base_offset=base_offset,
            leader_epoch=controller_epoch,
            compression=Compression.ZSTD if large else Compression.NONE,
        )
    )


def decode_metadata_batch(batch: Buffer) -> Iterator[Message]:
    """Raises CorruptLog where a committed batch cannot be read: the broker stops."""
    try:
        for record in decode_records(batch):
            if record.value is None:
                raise CorruptLog(f"the metadata record at offset {record.offset} has no value")
            yield decode_record(record.value)
    except CorruptLog:
        raise
    except HeadraceError as error:
        raise CorruptLog(f"a committed metadata batch cannot be read: {error}") from error


def pack(groups: Iterable[RecordGroup], *, max_bytes: int = MAX_BATCH_BYTES) -> Iterator[Payload]:
    """Groups into batches: a group is never split, except one that is larger than a batch.

    Such a group is a batch of its own if compression makes it small enough. Otherwise it becomes a
    transaction over several batches, and nothing else is in them.
    """
    payload, size = Payload([], []), 0
    for group in groups:
        values = [encode_record(record) for record in group]
        length = sum(map(len, values)) + _RECORD_OVERHEAD * len(values)
        if payload.values and size + length > max_bytes:
            yield payload
            payload, size = Payload([], []), 0
        if length > max_bytes and _shrinks(values, max_bytes):
            yield Payload(values, list(group))
            continue
        if length > max_bytes:
            yield from _pack_transaction(group, values, max_bytes)
            continue
        payload.values.extend(values)
        payload.records.extend(group)
        size += length
    if payload.values:
        yield payload


def _shrinks(values: list[bytes], max_bytes: int) -> bool:
    """Whether a batch of these is small enough once it is compressed, whatever surrounds its records."""
    size = sum(map(len, values))
    if not COMPRESSED_FROM < size <= MOST_COMPRESSED:
        return False
    return 2 * len(compress(Compression.ZSTD, b"".join(values))) <= max_bytes


def _pack_transaction(group: RecordGroup, values: list[bytes], max_bytes: int) -> Iterator[Payload]:
    begin, end = BeginTransactionRecord(), EndTransactionRecord()
    records: RecordGroup = [begin, *group, end]
    payload, size = Payload([], []), 0
    for record, value in zip(records, [encode_record(begin), *values, encode_record(end)], strict=True):
        length = len(value) + _RECORD_OVERHEAD
        if payload.values and size + length > max_bytes:
            yield payload
            payload, size = Payload([], []), 0
        payload.values.append(value)
        payload.records.append(record)
        size += length
    yield payload

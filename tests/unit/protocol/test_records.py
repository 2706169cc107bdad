from __future__ import annotations

import struct
import warnings

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import CorruptBatch, InvalidRecord
from headrace.protocol import batch as batches
from headrace.protocol.compression import Compression
from headrace.protocol.control_records import (
    ControlType,
    control_key,
    control_type,
    end_marker,
    end_marker_epoch,
)
from headrace.protocol.records import (
    NewRecord,
    Record,
    decode_records,
    encode_batch,
    rebuild_batch,
    recompress,
)

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated call while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KpBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KpBuilder

SAMPLE = [
    NewRecord(b"value", b"key", 1_700_000_000_000, (("trace", b"1"), ("none", None), ("", b""))),
    NewRecord(None, b"tombstone", 1_700_000_000_500),
    NewRecord(b"", None, 1_699_999_999_000),
    NewRecord(b"x" * 70_000, b"k" * 200, 1_700_000_100_000, (("h" * 100, b"y" * 300),)),
    NewRecord(None, None, 1_700_000_000_000),
]

keys = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=20)), max_size=4).map(tuple)
new_records = st.builds(NewRecord, keys, keys, st.integers(-1, 1 << 45), headers)


def as_read(records: list[NewRecord], base_offset: int = 0) -> list[Record]:
    return [Record(base_offset + i, r.timestamp, r.key, r.value, r.headers) for i, r in enumerate(records)]


def seal(body: bytes, count: int, last_delta: int | None = None, attributes: int = 0) -> bytearray:
    """A batch with a good checksum around any body: what a malicious producer would send."""
    out = bytearray(
        struct.pack(
            ">qiibIhiqqqhii",
            0,
            49 + len(body),
            -1,
            2,
            0,
            attributes,
            count - 1 if last_delta is None else last_delta,
            0,
            0,
            -1,
            -1,
            -1,
            count,
        )
        + body
    )
    batches.reseal(out, 0, len(out))
    return out


@pytest.mark.parametrize("codec", list(Compression))
@given(records=st.lists(new_records, min_size=1, max_size=30), base=st.integers(0, 1 << 60))
def test_round_trip(codec: Compression, records: list[NewRecord], base: int) -> None:
    batch = encode_batch(records, base_offset=base, compression=codec)
    assert list(decode_records(batch)) == as_read(records, base)


@given(records=st.lists(new_records, min_size=1, max_size=5), pad=st.integers(0, 20))
def test_a_batch_in_the_middle_of_a_buffer(records: list[NewRecord], pad: int) -> None:
    batch = b"\xee" * pad + bytes(encode_batch(records)) + b"\xee" * 5
    assert list(decode_records(memoryview(batch), pad)) == as_read(records)


@pytest.mark.parametrize("codec", list(Compression))
def test_aiokafka_reads_what_is_written(codec: Compression) -> None:
    batch = bytes(encode_batch(SAMPLE, base_offset=77, compression=codec))
    reader = AioBatch(batch)
    assert reader.validate_crc()
    read = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in reader]
    assert read == as_read(SAMPLE, 77)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP, Compression.LZ4])
def test_kafka_python_reads_what_is_written(codec: Compression) -> None:
    batch = bytes(encode_batch(SAMPLE, base_offset=77, compression=codec))
    reader = KpBatch(batch)
    assert reader.validate_crc()
    read = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in reader]
    assert read == as_read(SAMPLE, 77)


@pytest.mark.parametrize("codec", list(Compression))
def test_what_aiokafka_writes_is_read(codec: Compression) -> None:
    builder = AioBuilder(2, int(codec), True, 9, 3, 12, 1 << 20)
    for index, record in enumerate(SAMPLE):
        assert builder.append(
            index,
            timestamp=record.timestamp,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
        )
    batch = bytes(builder.build())
    header = batches.check(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 3, 12)
    assert header.is_transactional
    assert list(decode_records(batch)) == as_read(SAMPLE)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP, Compression.LZ4])
def test_what_kafka_python_writes_is_read_and_equal(codec: Compression) -> None:
    builder = KpBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for index, record in enumerate(SAMPLE):
        assert builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    assert list(decode_records(batch)) == as_read(SAMPLE)
    if codec is Compression.NONE:
        assert bytes(encode_batch(SAMPLE, leader_epoch=0)) == batch


def test_header_fields_of_a_written_batch() -> None:
    batch = encode_batch(
        SAMPLE,
        base_offset=5,
        compression=Compression.GZIP,
        producer_id=1,
        producer_epoch=2,
        base_sequence=3,
        leader_epoch=4,
        transactional=True,
        control=True,
        log_append_time=True,
    )
    header = batches.check(batch)
    assert header.size == len(batch)
    assert header.attributes == 1 | 0x08 | 0x10 | 0x20
    assert (header.base_offset, header.last_offset, header.leader_epoch, header.record_count) == (5, 9, 4, 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1, 2, 3)
    assert header.max_timestamp == 1_700_000_100_000
    assert {record.timestamp for record in decode_records(batch)} == {1_700_000_100_000}


def test_an_empty_batch_is_not_written() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch([])


def test_compaction_keeps_offsets_and_producer() -> None:
    batch = encode_batch(
        SAMPLE, base_offset=100, producer_id=1, producer_epoch=0, base_sequence=7, compression=Compression.LZ4
    )
    header = batches.check(batch)
    kept = [record for record in decode_records(batch) if record.offset in (101, 103)]
    rebuilt = rebuild_batch(header, kept)
    after = batches.check(rebuilt)
    assert list(decode_records(rebuilt)) == kept
    assert (after.base_offset, after.last_offset, after.base_sequence) == (100, 104, 7)
    assert after.record_count == 2
    assert after.max_timestamp == 1_700_000_100_000
    assert after.compression == Compression.LZ4

    marked = rebuild_batch(header, kept, delete_horizon_ms=1_800_000_000_000)
    assert list(decode_records(marked)) == kept
    assert batches.check(marked).base_timestamp == 1_800_000_000_000
    assert batches.check(marked).attributes & batches.DELETE_HORIZON_FLAG

    emptied = rebuild_batch(header, [])
    assert list(decode_records(emptied)) == []
    assert len(emptied) == batches.HEADER_SIZE
    assert batches.check(emptied).compression == Compression.NONE
    assert batches.check(emptied).last_offset == 104


def test_recompression_changes_only_the_codec() -> None:
    batch = encode_batch(SAMPLE, base_offset=3, compression=Compression.ZSTD, producer_id=8)
    changed = recompress(b"pad" + bytes(batch), Compression.GZIP, 9, at=3)
    header = batches.check(changed)
    assert header.compression == Compression.GZIP
    assert header.producer_id == 8
    assert list(decode_records(changed)) == as_read(SAMPLE, 3)
    assert recompress(changed, Compression.NONE) == encode_batch(SAMPLE, base_offset=3, producer_id=8)


def test_header_keys_that_are_not_text_survive() -> None:
    body = b"\x14\x00\x00\x00\x01\x01\x02\x04\xff\xfe\x01"
    (record,) = decode_records(seal(body, 1))
    assert record.headers == (("\udcff\udcfe", None),)
    assert encode_batch([NewRecord(None, None, 0, record.headers)])[61:] == body


GOOD = b"\x10\x00\x00\x00\x02k\x02v\x00"  # one record: key k, value v


@pytest.mark.parametrize(
    ("body", "count", "text"),
    [
        (GOOD[:-1], 1, "where 7 remain"),
        (GOOD + b"\x00", 1, "1 bytes follow"),
        (GOOD, 2, "2 records cannot be in 9 bytes"),
        (GOOD, -1, "-1 records"),
        (GOOD, 0x7FFFFFFF, "cannot be in"),
        (b"\x0e\x00\x00\x00\x02k\x02v\x00", 1, "of 1 bytes where 0 remain|ends at byte|runs past"),
        (b"\x12\x00\x00\x00\x02k\x02v\x00\x00", 1, "ends at byte 9, its length says 10"),
        (b"\x10\x00\x00\x02\x02k\x02v\x00", 1, "offset delta 1"),
        (b"\x10\x00\x00\x01\x02k\x02v\x00", 1, "offset delta -1"),
        (GOOD + GOOD, 2, "offset delta 0 after 0"),
        (b"\x10\x00\x00\x00\x7ek\x02v\x00", 1, "a field of 63 bytes"),
        (b"\x10\x00\x00\x00\x05k\x02v\x00", 1, "a field of -3 bytes"),
        (b"\x10\x00\x00\x00\x01\x04vv\x7e", 1, "63 headers cannot be in 0 bytes"),
        (b"\x10\x00\x00\x00\x01\x02v\x01\x00", 1, "-1 headers"),
        (b"\x12\x00\x00\x00\x01\x01\x02\x01\x00\x00", 1, "header without a key"),
        (b"\xff\xff\xff\xff\xff\xff\x01" + GOOD, 1, "more than 5 bytes"),
        (b"\xfe\xff\xff\xff\x7f" + GOOD, 1, "does not fit 32 bits"),
        (b"\x01" + GOOD, 1, "a record of -1 bytes"),
        (b"\x24\x00" + b"\xff" * 10 + b"\x01" + b"\x00\x00\x00\x00\x00\x00", 1, "more than 10 bytes"),
        (b"\x1e\x00" + b"\xff" * 9 + b"\x7f" + b"\x00\x00\x00\x00", 1, "does not fit 64 bits"),
    ],
)
def test_batches_that_contradict_themselves(body: bytes, count: int, text: str) -> None:
    with pytest.raises(InvalidRecord, match=text):
        list(decode_records(seal(body, count, last_delta=max(0, min(count - 1, 100)))))


def test_the_good_body_is_good() -> None:
    assert list(decode_records(seal(GOOD, 1))) == [Record(0, 0, b"k", b"v", ())]


def test_batches_that_are_cut_off() -> None:
    batch = encode_batch(SAMPLE[:2])
    for length in (0, 10, 60, 61, len(batch) - 1):
        with pytest.raises(CorruptBatch):
            list(decode_records(batch[:length]))
    batch[16] = 1
    with pytest.raises(CorruptBatch, match="magic 1"):
        list(decode_records(batch))


def test_the_cap_holds_without_compression_too() -> None:
    batch = encode_batch([NewRecord(b"x" * 1000, None, 0)])
    with pytest.raises(InvalidRecord):
        list(decode_records(batch, max_bytes=500))


@given(at=st.integers(61, 400), value=st.integers(0, 255), codec=st.sampled_from(list(Compression)))
def test_a_changed_byte_gives_only_our_errors(at: int, value: int, codec: Compression) -> None:
    batch = encode_batch([*SAMPLE[:3], NewRecord(b"y" * 100, b"z" * 90, 5)], compression=codec)
    batch[61 + (at - 61) % (len(batch) - 61)] = value
    try:
        list(decode_records(batch, max_bytes=1 << 20))
    except (CorruptBatch, InvalidRecord):
        pass


@given(body=st.binary(max_size=300), count=st.integers(0, 40))
def test_noise_gives_only_our_errors(body: bytes, count: int) -> None:
    try:
        list(decode_records(seal(body, count, last_delta=100)))
    except InvalidRecord:
        pass


def test_end_markers() -> None:
    batch = encode_batch(
        [end_marker(commit=True, coordinator_epoch=7, timestamp=5)],
        control=True,
        transactional=True,
        producer_id=1,
        producer_epoch=0,
    )
    (record,) = decode_records(batch)
    assert control_type(record) == ControlType.COMMIT
    assert end_marker_epoch(record) == 7
    assert record.key == b"\x00\x00\x00\x01"
    assert AioBatch(bytes(batch)).is_control_batch
    assert control_key(ControlType.ABORT) == b"\x00\x00\x00\x00"
    with pytest.raises(InvalidRecord):
        control_type(Record(0, 0, b"\x00", None))
    with pytest.raises(InvalidRecord):
        end_marker_epoch(Record(0, 0, b"", b"\x00"))

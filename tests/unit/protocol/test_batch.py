from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import CorruptBatch
from headrace.protocol import batch as batches
from headrace.protocol.records import NewRecord, decode_records, encode_batch


def one(base_offset: int = 0, count: int = 3, **options: Any) -> bytearray:
    return encode_batch(
        [NewRecord(b"v%d" % i, b"k", 100 + i) for i in range(count)], base_offset=base_offset, **options
    )


def test_check_reads_every_field() -> None:
    batch = one(42, 3, producer_id=5, producer_epoch=6, base_sequence=7, leader_epoch=8)
    header = batches.check(batch)
    assert header == batches.read_header(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (42, 44, 45)
    assert (header.base_timestamp, header.max_timestamp) == (100, 102)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (
        5,
        6,
        7,
        9,
    )
    assert (header.size, header.record_count, header.leader_epoch) == (len(batch), 3, 8)
    assert not header.is_control
    assert not header.is_transactional
    assert not header.is_log_append_time
    assert header.compression == 0


def test_sequences_wrap_and_may_be_absent() -> None:
    assert batches.check(one(base_sequence=0x7FFFFFFE)).last_sequence == 0
    assert batches.check(one()).last_sequence == -1


@given(bit=st.integers(0, 10_000))
def test_any_changed_bit_under_the_checksum_is_found(bit: int) -> None:
    batch = one()
    at = batches.CRC_FROM * 8 + bit % ((len(batch) - batches.CRC_FROM) * 8)
    batch[at // 8] ^= 1 << (at % 8)
    with pytest.raises(CorruptBatch, match="checksum"):
        batches.check(batch)


@pytest.mark.parametrize("length", [0, 11, 12, 60, 61])
def test_a_batch_that_is_cut_off(length: int) -> None:
    with pytest.raises(CorruptBatch):
        batches.check(one()[:length])


@pytest.mark.parametrize("length", [-1, 0, 48, 0x7FFFFFFF])
def test_a_length_that_cannot_be(length: int) -> None:
    batch = one()
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(CorruptBatch, match="batch length"):
        batches.check(batch)


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_another_magic(magic: int) -> None:
    batch = one()
    struct.pack_into(">b", batch, 16, magic)
    with pytest.raises(CorruptBatch, match="magic"):
        batches.check(batch)


@pytest.mark.parametrize(("last_delta", "count"), [(-1, 0), (2, -1), (2, 4), (-5, 3)])
def test_counts_that_disagree(last_delta: int, count: int) -> None:
    batch = one()
    struct.pack_into(">i", batch, 23, last_delta)
    struct.pack_into(">i", batch, 57, count)
    batches.reseal(batch, 0, len(batch))
    with pytest.raises(CorruptBatch, match="records with last offset delta"):
        batches.check(batch)


def test_compacted_batches_may_hold_fewer_records_than_offsets() -> None:
    batch = one()
    struct.pack_into(">i", batch, 23, 9)
    batches.reseal(batch, 0, len(batch))
    assert batches.check(batch).last_offset == 9


def test_assigning_offsets_leaves_the_checksum_good() -> None:
    buffer = bytearray(b"\xaa" * 7) + one()
    batches.assign(memoryview(buffer), 7, 1 << 40, 12)
    header = batches.check(buffer, 7)
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 12)
    assert [record.offset for record in decode_records(buffer, 7)] == [(1 << 40) + i for i in range(3)]
    assert DefaultRecordBatch(bytes(buffer[7:])).validate_crc()


def test_log_append_time_is_stamped() -> None:
    buffer = bytearray(b"\xaa" * 7) + one()
    batches.stamp_log_append_time(buffer, 7, len(buffer) - 7, 9_999)
    header = batches.check(buffer, 7)
    assert header.is_log_append_time
    assert header.max_timestamp == 9_999
    oracle = DefaultRecordBatch(bytes(buffer[7:]))
    assert {record.timestamp for record in oracle} == {9_999}
    assert {record.timestamp for record in decode_records(buffer, 7)} == {9_999}


def test_iteration_stops_at_the_tail_that_is_cut_off() -> None:
    first, second = one(0), one(3)
    data = bytes(first + second)
    assert [(at, header.base_offset) for at, header in batches.iterate(data)] == [(0, 0), (len(first), 3)]
    assert [at for at, _ in batches.iterate(data[:-1])] == [0]
    assert [at for at, _ in batches.iterate(data, len(first))] == [len(first)]
    assert [at for at, _ in batches.iterate(data, 0, len(first))] == [0]
    assert list(batches.iterate(b"")) == []


def test_iteration_refuses_a_length_that_would_not_move_on() -> None:
    data = one() + one()
    struct.pack_into(">i", data, 8, -12)
    with pytest.raises(CorruptBatch, match="at position 0"):
        list(batches.iterate(data))

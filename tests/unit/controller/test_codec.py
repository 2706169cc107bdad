from __future__ import annotations

import random
from uuid import UUID

import pytest

from headrace.controller import codec
from headrace.controller.codec import (
    MAX_BATCH_BYTES,
    decode_metadata_batch,
    decode_record,
    encode_metadata_batch,
    encode_record,
    pack,
)
from headrace.core.errors import CorruptLog
from headrace.protocol.batch import check
from headrace.protocol.message import Message
from headrace.protocol.records import NewRecord, encode_batch
from headrace.protocol.stored.begin_transaction_record import BeginTransactionRecord
from headrace.protocol.stored.config_record import ConfigRecord
from headrace.protocol.stored.end_transaction_record import EndTransactionRecord
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord
from headrace.protocol.stored.no_op_record import NoOpRecord
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord


def config(size: int) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="t", name="n", value="v" * size)


def test_the_frame_is_kafkas() -> None:
    """Frame version 1, kind 12, version 0, then a compact string and a 16-bit level, no tags."""
    record = FeatureLevelRecord(name="ab", feature_level=258)
    assert encode_record(record) == bytes([1, 12, 0, 3, 97, 98, 1, 2, 0])
    assert decode_record(encode_record(record)) == record


def test_a_partition_change_is_small() -> None:
    """Thousands of them follow a lost host; the batch must stay small."""
    record = PartitionChangeRecord(partition_id=5, topic_id=UUID(int=1), leader=3)
    assert len(encode_record(record)) <= 30


def test_a_batch_carries_sequence_epoch_and_time() -> None:
    values = [encode_record(NoOpRecord()), encode_record(config(3))]
    batch = encode_metadata_batch(values, base_offset=41, controller_epoch=7, timestamp_ms=1234)
    header = check(batch)
    assert (header.base_offset, header.next_offset, header.leader_epoch) == (41, 43, 7)
    assert (header.base_timestamp, header.max_timestamp) == (1234, 1234)
    assert list(decode_metadata_batch(batch)) == [NoOpRecord(), config(3)]


@pytest.mark.parametrize(
    "value",
    [
        bytes([2, 20, 0, 0]),  # another frame
        bytes([1, 99, 1, 0]),  # a kind of the future
        bytes([1, 20, 9, 0]),  # a version of the future
        bytes([1, 12, 0, 9, 97]),  # cut off
        bytes([1, 20, 0, 0, 0]),  # bytes left over
        b"",
        None,
    ],
)
def test_what_cannot_be_read_stops_the_broker(value: bytes | None) -> None:
    batch = encode_batch([NewRecord(value)])
    with pytest.raises(CorruptLog):
        list(decode_metadata_batch(batch))


def unpacked(groups: list[list[Message]], max_bytes: int) -> list[list[Message]]:
    payloads = list(pack(groups, max_bytes=max_bytes))
    for payload in payloads:
        assert [decode_record(value) for value in payload.values] == payload.records
        assert sum(map(len, payload.values)) <= max_bytes
    return [payload.records for payload in payloads]


def test_groups_share_a_batch_and_are_never_split() -> None:
    groups: list[list[Message]] = [[config(30), config(30)] for _ in range(5)]
    packed = unpacked(groups, 300)
    assert [len(records) for records in packed] == [4, 4, 2]
    assert [record for records in packed for record in records] == [r for group in groups for r in group]


def test_a_group_too_large_for_a_batch_becomes_a_transaction() -> None:
    large: list[Message] = [config(50) for _ in range(10)]
    packed = unpacked([[NoOpRecord()], large, [NoOpRecord()]], 300)
    assert packed[0] == [NoOpRecord()]
    assert packed[-1] == [NoOpRecord()]
    middle = [record for records in packed[1:-1] for record in records]
    assert len(packed) > 3
    assert middle == [BeginTransactionRecord(), *large, EndTransactionRecord()]


def test_no_groups_no_batches() -> None:
    assert list(pack([])) == []


def test_a_full_batch_stays_under_the_limit_of_the_coordination_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec, "COMPRESSED_FROM", 1 << 40)  # as if nothing could be made smaller
    groups: list[list[Message]] = [
        [PartitionChangeRecord(partition_id=i, topic_id=UUID(int=i << 64), leader=1)] for i in range(12_000)
    ]
    first = next(iter(pack(groups)))
    batch = encode_metadata_batch(
        first.values, base_offset=1 << 40, controller_epoch=1, timestamp_ms=1_700_000_000_000
    )
    assert len(batch) < 512 * 1024
    assert len(batch) > MAX_BATCH_BYTES // 2


def lost_broker(partitions: int) -> list[Message]:
    """What the loss of a broker changes: every row of a topic, each in its own way."""
    return [
        PartitionChangeRecord(
            partition_id=number,
            topic_id=UUID(int=77 << 64),
            isr=[number % 5, 5 + number % 3],
            leader=number % 5,
        )
        for number in range(partitions)
    ]


@pytest.mark.parametrize("partitions", [10, 1000, 10_000, 50_000])
def test_the_loss_of_a_broker_is_one_batch_whatever_it_held(partitions: int) -> None:
    group = lost_broker(partitions)
    (payload,) = pack([group])
    batch = encode_metadata_batch(payload.values, base_offset=3, controller_epoch=1, timestamp_ms=0)
    assert len(batch) < MAX_BATCH_BYTES
    assert payload.records == group
    assert list(decode_metadata_batch(batch)) == group


def test_what_cannot_be_compressed_enough_becomes_a_transaction() -> None:
    chance = random.Random(5)
    group: list[Message] = [
        ConfigRecord(resource_type=2, resource_name="t", name=str(number), value=chance.randbytes(500).hex())
        for number in range(2000)
    ]
    payloads = list(pack([group]))
    assert len(payloads) > 1
    assert [r for each in payloads for r in each.records] == [
        BeginTransactionRecord(),
        *group,
        EndTransactionRecord(),
    ]
    for each in payloads:
        batch = encode_metadata_batch(each.values, base_offset=0, controller_epoch=1, timestamp_ms=0)
        assert len(batch) < 512 * 1024

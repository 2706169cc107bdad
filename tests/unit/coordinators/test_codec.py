"""Records as bytes: commits and transactions take a short cut, which must come out at the same bytes."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.coordinators.codec import decode, encode
from headrace.coordinators.decision import CoordinatorRecord
from headrace.coordinators.kinds import GROUP_KINDS
from headrace.protocol.records import Record
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey
from headrace.protocol.stored.group_metadata_value import GroupMetadataValue
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue
from headrace.protocol.stored.transaction_log_key import TransactionLogKey
from headrace.protocol.stored.transaction_log_value import PartitionsSchema, TransactionLogValue

NOW = 1_700_000_000_000
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
METADATA = st.one_of(TEXT, st.integers(0, 300).map(lambda size: "x" * size))

KEYS = st.builds(OffsetCommitKey, group=TEXT, topic=TEXT, partition=INT32)
VALUES = st.builds(
    OffsetCommitValue,
    offset=INT64,
    leader_epoch=INT32,
    metadata=METADATA,
    commit_timestamp=INT64,
    topic_id=st.one_of(st.just(UUID(int=0)), st.uuids()),
)


@given(key=KEYS, value=VALUES, version=st.integers(0, 4))
def test_an_offset_commit_is_written_as_its_classes_would(
    key: OffsetCommitKey, value: OffsetCommitValue, version: int
) -> None:
    encoded = encode(CoordinatorRecord(key, value, version), 77)
    assert encoded.key == b"\x00\x01" + key.to_bytes(0)
    assert encoded.value == version.to_bytes(2, "big") + value.to_bytes(version)
    assert encoded.timestamp == 77


def test_a_tombstone_has_no_value() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    encoded = encode(CoordinatorRecord(key, None), 77)
    assert (encoded.key, encoded.value) == (b"\x00\x01" + key.to_bytes(0), None)


def test_records_come_back() -> None:
    for record in (
        CoordinatorRecord(OffsetCommitKey(group="g", topic="t"), OffsetCommitValue(offset=5), 4),
        CoordinatorRecord(OffsetCommitKey(group="g", topic="t"), None),
        CoordinatorRecord(GroupMetadataKey(group="g"), GroupMetadataValue(protocol_type="consumer"), 4),
    ):
        value, key, timestamp, _ = encode(record, 1)
        assert decode(Record(0, timestamp, key, value), GROUP_KINDS) == record


def test_what_is_not_understood_is_passed_over() -> None:
    value, key, _, _ = encode(
        CoordinatorRecord(OffsetCommitKey(group="g", topic="t"), OffsetCommitValue(offset=5), 4), 1
    )
    assert key is not None
    assert value is not None
    for damaged_key, damaged_value in (
        (None, value),
        (b"\x00", value),
        (b"\x7f\x01" + key[2:], value),
        (key[:5], value),
        (key, b"\x00\x63" + value[2:]),
        (key, value[:9]),
    ):
        assert decode(Record(0, 1, damaged_key, damaged_value), GROUP_KINDS) is None


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("topics", [None, 0, 1, 126, 127])
@pytest.mark.parametrize("partitions", [0, 1, 126, 127])
@pytest.mark.parametrize("tagged", [(-1, -1, 0, -1), (5, -1, 2, -1), (5, 6, 2, 7), (-1, -1, 2, 32_767)])
def test_a_transaction_is_written_as_by_the_generated_class(
    version: int, topics: int | None, partitions: int, tagged: tuple[int, int, int, int]
) -> None:
    value = TransactionLogValue(
        producer_id=1 << 40,
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_status=2,
        transaction_partitions=None
        if topics is None
        else [
            PartitionsSchema(topic=f"t-{number}", partition_ids=list(range(partitions)))
            for number in range(topics)
        ],
        transaction_last_update_timestamp_ms=NOW,
        transaction_start_timestamp_ms=NOW - 5,
    )
    if version:
        (
            value.previous_producer_id,
            value.next_producer_id,
            value.client_transaction_version,
            value.next_producer_epoch,
        ) = tagged
    written = encode(CoordinatorRecord(TransactionLogKey(transactional_id="id-ü"), value, version), NOW)

    assert written.key == b"\x00\x00" + TransactionLogKey(transactional_id="id-ü").to_bytes(0)
    assert written.value == version.to_bytes(2, "big") + value.to_bytes(version)
    assert written.timestamp == NOW

"""What a partition promises while it leads: who may write and read, and what is visible to whom."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from headrace.core.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from headrace.log.os_disk import OsDisk
from headrace.metrics.registry import TopicMetrics
from headrace.replication.high_watermark import HighWatermark
from headrace.replication.partition import ACKS_ALL, Partition
from tests.unit.log.material import NOW, PARTITION, batch_of, open_at, topic_config, whole_batches

LOCAL = 1
FOLLOWER = 2


class Listener:
    """Somebody who waits for more."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def on_committed(self, appended_bytes: int) -> None:
        self.told.append(appended_bytes)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(min_insync_replicas=2))
    return Partition(PARTITION, UUID(int=3), log, TopicMetrics())


def append(partition: Partition, *values: bytes, acks: int = 1) -> int:
    batch, header = batch_of(*values)
    return partition.append(batch, header, acks=acks, now_ms=NOW).base_offset


def visible(partition: Partition, offset: int = 0) -> int:
    """How many records a consumer that asks from `offset` on can see."""
    found = partition.read(offset, 1 << 20)
    if not found.length:
        return 0
    batches = whole_batches(found.file.pread(found.length, found.position))
    return sum(len(records) for _, records in batches)


def test_a_partition_that_is_not_led_here_takes_nothing(partition: Partition) -> None:
    with pytest.raises(NotLeader):
        append(partition, b"a")
    with pytest.raises(NotLeader):
        partition.check_epoch(-1)
    assert partition.log.end_offset == 0


def test_acks_all_is_refused_before_anything_is_written(partition: Partition) -> None:
    partition.lead(0, [LOCAL], LOCAL)
    with pytest.raises(NotEnoughReplicas, match=r"min\.insync\.replicas asks for 2"):
        append(partition, b"a", acks=ACKS_ALL)
    assert partition.log.end_offset == 0
    assert append(partition, b"a", acks=1) == 0


def test_what_a_follower_lacks_is_not_visible(partition: Partition) -> None:
    partition.lead(0, [LOCAL, FOLLOWER], LOCAL)
    append(partition, b"a", b"b", acks=ACKS_ALL)
    assert partition.log.end_offset == 2
    assert partition.high_watermark == 0
    assert visible(partition) == 0
    partition.lead(0, [LOCAL], LOCAL)
    assert partition.high_watermark == 2
    assert visible(partition) == 2


def test_waiters_hear_of_what_is_committed_and_of_nothing_else(partition: Partition) -> None:
    listener = Listener()
    partition.wait(listener)
    partition.lead(0, [LOCAL, FOLLOWER], LOCAL)
    append(partition, b"a")
    assert listener.told == []
    partition.lead(1, [LOCAL], LOCAL)
    append(partition, b"b")
    assert len(listener.told) == 1
    assert listener.told[0] > 0
    partition.stop_waiting(listener)
    append(partition, b"c")
    assert len(listener.told) == 1


def test_a_leader_that_resigns_lets_nobody_wait(partition: Partition) -> None:
    partition.lead(0, [LOCAL], LOCAL)
    listener = Listener()
    partition.wait(listener)
    partition.resign()
    assert listener.told == [0]
    with pytest.raises(NotLeader):
        append(partition, b"a")


def test_old_and_future_epochs_are_told_apart(partition: Partition) -> None:
    partition.lead(5, [LOCAL], LOCAL)
    partition.check_epoch(5)
    partition.check_epoch(-1)
    with pytest.raises(FencedLeaderEpoch):
        partition.check_epoch(4)
    with pytest.raises(UnknownLeaderEpoch):
        partition.check_epoch(6)


def test_an_epoch_without_records_ends_at_the_end(partition: Partition) -> None:
    partition.lead(0, [LOCAL], LOCAL)
    append(partition, b"a", b"b")
    partition.lead(3, [LOCAL], LOCAL)
    assert partition.end_offset_for_epoch(3) == (3, 2)
    assert partition.end_offset_for_epoch(0) == (0, 2)
    assert partition.log.latest_epoch == 0, "an epoch is written down with its first append"
    append(partition, b"c")
    assert partition.log.latest_epoch == 3
    assert partition.end_offset_for_epoch(0) == (0, 2)
    assert partition.end_offset_for_epoch(3) == (3, 3)


def test_a_past_epoch_without_records_ends_where_the_log_ended(partition: Partition) -> None:
    """A consumer that was told of it before a restart must not take it for a truncation."""
    partition.lead(3, [LOCAL, FOLLOWER], LOCAL)
    append(partition, b"a", b"b")
    for epoch in (4, 5):
        partition.lead(epoch, [LOCAL, FOLLOWER], LOCAL)
    assert partition.end_offset_for_epoch(4) == (4, 2)
    assert partition.end_offset_for_epoch(5) == (5, 2)
    assert partition.end_offset_for_epoch(3) == (3, 2)
    assert partition.end_offset_for_epoch(6) == (-1, -1)


def test_only_committed_records_can_be_deleted(partition: Partition) -> None:
    partition.lead(0, [LOCAL, FOLLOWER], LOCAL)
    append(partition, b"a", b"b")
    with pytest.raises(OffsetOutOfRange):
        partition.delete_records_before(1)
    partition.lead(1, [LOCAL], LOCAL)
    assert partition.delete_records_before(1) == 1
    assert partition.delete_records_before(-1) == 2


def test_the_high_watermark_never_goes_back() -> None:
    mark = HighWatermark(5)
    assert not mark.on_append(3)
    assert mark.offset == 5
    assert mark.on_append(8)
    assert not mark.on_append(8)
    mark.set_followers([FOLLOWER])
    assert not mark.on_append(20), "a follower that has said nothing holds it back"
    assert mark.offset == 8
    mark.set_followers([])
    assert mark.on_append(20)
    assert mark.offset == 20

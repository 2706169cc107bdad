"""What a partition promises while it leads: who may write and read, and what is visible to whom."""

from __future__ import annotations

import pytest

from headrace.core.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from headrace.replication.partition import ACKS_ALL, Partition
from headrace.replication.replica import Role
from tests.unit.log.material import topic_config
from tests.unit.replication.replicas import (
    LOCAL,
    Listener,
    Producer,
    append,
    fetch,
    new_partition,
    row,
    visible,
)


@pytest.fixture
def partition() -> Partition:
    return new_partition(min_insync_replicas=2)


def lead_alone(partition: Partition, leader_epoch: int) -> None:
    partition.assign(row(LOCAL, leader_epoch, (1,), replicas=(1,)), LOCAL, 0.0)


def test_a_partition_that_is_not_led_here_takes_nothing(partition: Partition) -> None:
    with pytest.raises(NotLeader):
        append(partition, b"a")
    with pytest.raises(NotLeader):
        partition.check_epoch(-1)
    with pytest.raises(NotLeader):
        partition.check_read(-1)
    assert partition.log.end_offset == 0
    assert partition.role == Role.IDLE


def test_acks_all_is_refused_before_anything_is_written(partition: Partition) -> None:
    partition.assign(row(LOCAL, 0, (1,)), LOCAL, 0.0)
    with pytest.raises(NotEnoughReplicas, match=r"min\.insync\.replicas asks for 2"):
        append(partition, b"a", acks=ACKS_ALL)
    assert partition.log.end_offset == 0
    assert append(partition, b"a", acks=1) == 0


def test_a_partition_with_fewer_replicas_than_the_minimum_needs_all_of_them(partition: Partition) -> None:
    lead_alone(partition, 0)
    append(partition, b"a", acks=ACKS_ALL)
    assert partition.high_watermark == 1


def test_the_high_watermark_is_what_every_in_sync_replica_has(partition: Partition) -> None:
    partition.assign(row(LOCAL, 0), LOCAL, 0.0)
    append(partition, b"a", b"b")
    append(partition, b"c")
    assert (partition.high_watermark, visible(partition)) == (0, 0)
    fetch(partition, 2, 3)
    assert partition.high_watermark == 0, "a follower that has said nothing holds it back"
    fetch(partition, 3, 2)
    assert (partition.high_watermark, visible(partition)) == (2, 2)
    fetch(partition, 3, 3)
    assert (partition.high_watermark, visible(partition)) == (3, 3)


def test_the_high_watermark_never_goes_back(partition: Partition) -> None:
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a", b"b")
    fetch(partition, 2, 2)
    fetch(partition, 2, 1)
    assert partition.high_watermark == 2
    append(partition, b"c")
    fetch(partition, 2, 2)
    assert partition.high_watermark == 2


def test_the_high_watermark_stands_still_below_the_minimum_of_replicas(partition: Partition) -> None:
    """Rule 3: otherwise a single replica would decide what is committed."""
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a")
    partition.assign(row(LOCAL, 0, (1,), version=1), LOCAL, 0.0)
    assert partition.is_under_min_isr
    assert partition.high_watermark == 0
    append(partition, b"b")
    assert partition.high_watermark == 0
    partition.assign(row(LOCAL, 0, (1, 2), version=2), LOCAL, 0.0)
    fetch(partition, 2, 2)
    assert partition.high_watermark == 2


def test_a_new_term_knows_nothing_of_its_followers(partition: Partition) -> None:
    """Rule 9."""
    partition.assign(row(LOCAL, 0), LOCAL, 0.0)
    append(partition, b"a", b"b")
    fetch(partition, 2, 2)
    partition.assign(row(LOCAL, 1), LOCAL, 0.0)
    fetch(partition, 3, 2)
    assert partition.high_watermark == 0
    fetch(partition, 2, 2)
    assert partition.high_watermark == 2


def test_an_older_row_changes_nothing(partition: Partition) -> None:
    partition.assign(row(LOCAL, 3), LOCAL, 0.0)
    partition.assign(row(2, 2), LOCAL, 0.0)
    partition.assign(row(LOCAL, 3, (1,), version=29), LOCAL, 0.0)
    assert partition.is_leader
    assert (partition.leader_epoch, partition.isr) == (3, (1, 2, 3))


def test_readers_hear_of_commits_and_replicas_of_appends(partition: Partition) -> None:
    consumer, replica = Listener(), Listener()
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    partition.watch(consumer)
    partition.watch(replica, as_replica=True)
    append(partition, b"a")
    assert consumer.committed == []
    assert len(replica.appended) == 1
    fetch(partition, 2, 1)
    assert consumer.committed == replica.appended
    partition.unwatch(consumer)
    partition.unwatch(replica)
    append(partition, b"b")
    fetch(partition, 2, 2)
    assert len(replica.appended) == len(consumer.committed) == 1


def test_readers_are_told_about_how_much_was_committed(partition: Partition) -> None:
    consumer = Listener()
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    partition.watch(consumer)
    for _ in range(4):
        append(partition, b"a")
    fetch(partition, 2, 1)
    fetch(partition, 2, 4)
    size = partition.log.size_bytes
    assert consumer.committed == [size // 4, size - size // 4]


def test_who_resigns_lets_nobody_wait(partition: Partition) -> None:
    lead_alone(partition, 0)
    listener = Listener()
    partition.watch(listener)
    partition.resign()
    assert listener.changes == 1
    with pytest.raises(NotLeader):
        append(partition, b"a")


def test_a_new_epoch_is_told_to_those_who_wait_in_the_old_one(partition: Partition) -> None:
    lead_alone(partition, 0)
    listener, replica = Listener(), Listener()
    partition.watch(listener)
    partition.watch(replica, as_replica=True)
    lead_alone(partition, 1)
    assert (listener.changes, replica.changes) == (1, 1)


def test_acknowledgements_wait_for_the_high_watermark(partition: Partition) -> None:
    producer = Producer()
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    for place in range(3):
        append(partition, b"a", acks=ACKS_ALL)
        partition.await_commit(place + 1, producer, place)
    fetch(partition, 2, 2)
    assert producer.told == [(0, "ok"), (1, "ok")]
    fetch(partition, 2, 3)
    assert producer.told[2:] == [(2, "ok")]
    partition.await_commit(3, producer, 9)
    assert producer.told[3:] == [(9, "ok")], "what is committed already is told at once"


def test_a_repeated_batch_is_acknowledged_when_it_is_committed_itself(partition: Partition) -> None:
    producer = Producer()
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a")
    append(partition, b"b")
    partition.await_commit(2, producer, 2)
    partition.await_commit(1, producer, 1)
    fetch(partition, 2, 1)
    assert producer.told == [(1, "ok")]


@pytest.mark.parametrize("end", ["resign", "new epoch", "follow"])
def test_held_acknowledgements_fail_when_the_term_ends(partition: Partition, end: str) -> None:
    producer = Producer()
    partition.assign(row(LOCAL, 0), LOCAL, 0.0)
    append(partition, b"a")
    partition.await_commit(1, producer)
    if end == "resign":
        partition.resign()
    else:
        partition.assign(row(LOCAL if end == "new epoch" else 2, 1), LOCAL, 0.0)
    assert producer.told == [(0, "NotLeader")]
    if end != "new epoch":
        partition.await_commit(1, producer)
        assert producer.told == [(0, "NotLeader")] * 2


def test_a_commit_with_too_few_replicas_since_is_told_as_such(partition: Partition) -> None:
    producer = Producer()
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a", acks=ACKS_ALL)
    fetch(partition, 2, 1)
    partition.assign(row(LOCAL, 0, (1,), version=1), LOCAL, 0.0)
    partition.await_commit(1, producer)
    assert producer.told == [(0, "NotEnoughReplicasAfterAppend")]


def test_old_and_future_epochs_are_told_apart(partition: Partition) -> None:
    lead_alone(partition, 5)
    partition.check_epoch(5)
    partition.check_epoch(-1)
    with pytest.raises(FencedLeaderEpoch):
        partition.check_epoch(4)
    with pytest.raises(UnknownLeaderEpoch):
        partition.check_epoch(6)


def test_a_replica_must_be_in_the_leaders_own_epoch(partition: Partition) -> None:
    """Rule 2: a replica that does not say its epoch might be in any."""
    partition.assign(row(LOCAL, 5), LOCAL, 0.0)
    partition.check_replica(5)
    for epoch, refusal in ((-1, FencedLeaderEpoch), (4, FencedLeaderEpoch), (6, UnknownLeaderEpoch)):
        with pytest.raises(refusal):
            partition.check_replica(epoch)
    partition.assign(row(2, 6), LOCAL, 0.0)
    with pytest.raises(NotLeader):
        partition.check_replica(6)


def test_who_is_not_assigned_is_not_heard(partition: Partition) -> None:
    partition.assign(row(LOCAL, 0, (1, 2), replicas=(1, 2)), LOCAL, 0.0)
    append(partition, b"a")
    with pytest.raises(UnknownLeaderEpoch, match="broker 3 is no replica"):
        fetch(partition, 3, 1)
    assert partition.high_watermark == 0


def test_a_fetch_of_an_earlier_incarnation_is_not_heard(partition: Partition) -> None:
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a")
    fetch(partition, 2, 0, epoch=200)
    with pytest.raises(NotLeader, match="restarted"):
        fetch(partition, 2, 1, epoch=100)
    assert partition.high_watermark == 0


def test_an_epoch_without_records_ends_at_the_end(partition: Partition) -> None:
    lead_alone(partition, 0)
    append(partition, b"a", b"b")
    lead_alone(partition, 3)
    assert partition.end_offset_for_epoch(3) == (3, 2)
    assert partition.end_offset_for_epoch(0) == (0, 2)
    assert partition.log.latest_epoch == 0, "an epoch is written down with its first append"
    append(partition, b"c")
    assert partition.log.latest_epoch == 3
    assert partition.end_offset_for_epoch(0) == (0, 2)
    assert partition.end_offset_for_epoch(3) == (3, 3)


def test_a_past_epoch_without_records_here_may_have_some_elsewhere(partition: Partition) -> None:
    """A follower that led it must cut them off; a consumer that was told of it finds its offset in range."""
    lead_alone(partition, 3)
    append(partition, b"a", b"b")
    for epoch in (4, 5):
        lead_alone(partition, epoch)
    assert partition.end_offset_for_epoch(4) == (3, 2)
    assert partition.end_offset_for_epoch(5) == (5, 2)
    assert partition.end_offset_for_epoch(3) == (3, 2)
    assert partition.end_offset_for_epoch(6) == (-1, -1)
    assert partition.diverging(4, 1) == (3, 2)
    assert partition.diverging(5, 2) is None
    assert partition.diverging(3, 2) is None
    assert partition.diverging(3, 3) == (3, 2)


def test_only_committed_records_can_be_deleted(partition: Partition) -> None:
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a", b"b")
    with pytest.raises(OffsetOutOfRange):
        partition.delete_records_before(1)
    fetch(partition, 2, 2)
    assert partition.delete_records_before(1) == 1
    assert partition.delete_records_before(-1) == 2


def test_a_new_leader_knows_the_end_once_its_epochs_start_is_committed(partition: Partition) -> None:
    """Rule 5."""
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a", b"b")
    fetch(partition, 2, 1)
    partition.assign(row(LOCAL, 1, (1, 2)), LOCAL, 0.0)
    assert not partition.knows_the_end
    append(partition, b"c")
    fetch(partition, 2, 1)
    assert not partition.knows_the_end
    fetch(partition, 2, 2)
    assert partition.knows_the_end


def test_a_leader_without_followers_knows_the_end_at_once(partition: Partition) -> None:
    lead_alone(partition, 0)
    append(partition, b"a")
    lead_alone(partition, 1)
    assert partition.knows_the_end
    assert partition.high_watermark == 1


def test_an_offset_that_the_leader_does_not_have_counts_for_nothing(partition: Partition) -> None:
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a")
    append(partition, b"b")
    with pytest.raises(OffsetOutOfRange):
        fetch(partition, 2, 3)
    assert partition.high_watermark == 0
    fetch(partition, 2, 2)
    partition.delete_records_before(1)
    with pytest.raises(OffsetOutOfRange):
        fetch(partition, 2, 0)


def test_a_smaller_minimum_lets_the_high_watermark_go_at_once() -> None:
    """Nobody fetches again only because of that: followers that have everything repeat nothing."""
    partition = new_partition(min_insync_replicas=3)
    partition.assign(row(LOCAL, 0, (1, 2)), LOCAL, 0.0)
    append(partition, b"a")
    fetch(partition, 2, 1)
    assert partition.high_watermark == 0
    partition.log.update_config(topic_config(min_insync_replicas=2))
    partition.on_reconfigured()
    assert partition.high_watermark == 1

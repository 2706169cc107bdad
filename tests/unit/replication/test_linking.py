"""A leader here copies a leader there: both are real partitions over simulated disks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.core.errors import PolicyViolation
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.replica_fetch_codec import FetchedPartitionData
from headrace.replication.continuity import agrees
from headrace.replication.linking import LinkedPartition, LinkOutcome
from headrace.replication.partition import Partition
from tests.unit.log.material import NOW, batch_of, read_bytes
from tests.unit.replication.replicas import (
    LOCAL,
    Listener,
    answer,
    append,
    copy,
    finish_truncation,
    new_partition,
    row,
    visible,
)

SOURCE_ID = UUID(int=77)


def leader(root: str, epoch: int = 1, **settings: Any) -> Partition:
    """Alone in its cluster."""
    partition = new_partition(root=root, **settings)
    partition.assign(row(LOCAL, epoch, (LOCAL,), replicas=(LOCAL,)), LOCAL, 0.0)
    return partition


@pytest.fixture
def source() -> Partition:
    return leader("/source", epoch=40)


@pytest.fixture
def target() -> Partition:
    return leader("/target", epoch=3)


def linked_to(target: Partition) -> LinkedPartition:
    linked = LinkedPartition(target, "t", SOURCE_ID)
    linked.on_leader(5, 40)
    return linked


def served(source: Partition, linked: LinkedPartition) -> FetchedPartitionData:
    """As the source serves a consumer."""
    sent = linked.fetch_position()
    assert sent is not None
    if sent.last_fetched_epoch >= 0:
        diverging = source.diverging(sent.last_fetched_epoch, sent.fetch_offset)
        if diverging is not None:
            return answer(diverging=diverging)
    if not source.log.log_start_offset <= sent.fetch_offset <= source.log.end_offset:
        return answer(error=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    return answer(source, sent.fetch_offset)


def exchange(source: Partition, linked: LinkedPartition) -> LinkOutcome:
    """One round, with all that a fetcher would do for it."""
    sent = linked.fetch_position()
    assert sent is not None
    data = served(source, linked)
    outcome = linked.on_fetched(sent, data, NOW)
    if outcome == LinkOutcome.PROVE:
        end = linked.partition.log.end_offset
        own = linked.partition.read_as_replica(end - 1, 1)
        last = memoryview(own.file.pread(own.length, own.position))
        outcome = linked.proven(agrees(last, data.records, end), data, NOW)
    if outcome == LinkOutcome.RANGE:
        outcome = linked.on_range(source.log.log_start_offset, source.high_watermark)
    if outcome == LinkOutcome.TRUNCATING:
        finish_truncation(linked.partition)
        if linked.has_held:
            outcome = linked.append_held(NOW)
    return outcome


def copy_all(source: Partition, linked: LinkedPartition) -> LinkOutcome:
    for _ in range(10):
        outcome = exchange(source, linked)
        if outcome in (LinkOutcome.STOPPED, LinkOutcome.BACK_OFF):
            return outcome
        if linked.partition.log.end_offset == source.log.end_offset and linked.is_proven:
            return outcome
    raise AssertionError("it does not get on")


def without_epochs(partition: Partition) -> bytes:
    data = bytearray(read_bytes(partition.log, partition.log.log_start_offset))
    at = 0
    while at < len(data):
        data[at + 12 : at + 16] = bytes(4)
        at += int.from_bytes(data[at + 8 : at + 12], "big") + 12
    return bytes(data)


def test_the_copy_has_the_same_bytes_in_its_own_epoch(source: Partition, target: Partition) -> None:
    append(source, b"a", b"b")
    append(source, b"c", producer_id=9, producer_epoch=2, base_sequence=0)
    linked = linked_to(target)
    assert exchange(source, linked) == LinkOutcome.APPENDED
    assert without_epochs(target) == without_epochs(source)
    assert target.log.latest_epoch == 3
    assert target.log.end_offset == target.high_watermark == 3
    assert linked.last_source_epoch == 40
    assert linked.lag == 0


def test_consumers_and_followers_here_are_told(source: Partition) -> None:
    target = new_partition(root="/target")
    target.assign(row(LOCAL, 3, (1, 2), replicas=(1, 2)), LOCAL, 0.0)
    follower = new_partition(root="/follower")
    follower.assign(row(LOCAL, 3, (1, 2), replicas=(1, 2)), 2, 0.0)
    consumer, replica = Listener(), Listener()
    target.watch(consumer)
    target.watch(replica, as_replica=True)
    append(source, b"a")
    linked = linked_to(target)
    exchange(source, linked)
    assert replica.appended
    assert not consumer.committed  # the follower does not have it yet
    assert linked.lag == 1
    for _ in range(3):
        copy(target, follower)
    assert consumer.committed
    assert (target.high_watermark, follower.log.end_offset) == (1, 1)
    assert without_epochs(follower) == without_epochs(source)


def test_a_new_leader_here_compares_what_it_has_last_and_goes_on(
    source: Partition, target: Partition
) -> None:
    append(source, b"a")
    append(source, b"b")
    copy_all(source, linked_to(target))
    target.assign(row(LOCAL, 8, (LOCAL,), replicas=(LOCAL,)), LOCAL, 0.0)
    append(source, b"c")
    linked = linked_to(target)
    position = linked.fetch_position()
    assert position is not None
    assert position.fetch_offset == 1
    assert copy_all(source, linked) == LinkOutcome.APPENDED
    assert without_epochs(target) == without_epochs(source)
    assert target.log.latest_epoch == 8


def test_an_answer_for_an_earlier_term_finds_nobody(source: Partition, target: Partition) -> None:
    append(source, b"a")
    linked = linked_to(target)
    sent, data = linked.fetch_position(), served(source, linked)
    assert sent is not None
    target.assign(row(LOCAL, 8, (LOCAL,), replicas=(LOCAL,)), LOCAL, 0.0)
    assert linked.on_fetched(sent, data, NOW) == LinkOutcome.STALE
    again = linked_to(target)
    position = again.fetch_position()
    assert position is not None
    again.close()
    assert again.on_fetched(position, data, NOW) == LinkOutcome.STALE
    assert target.log.end_offset == 0


def cut(source: Partition, offset: int, epoch: int) -> None:
    """An unclean election: the next leader lacks what comes after `offset`."""
    source.resign()
    source.log.truncate_to(offset)
    source.high_watermark = offset
    source.assign(row(LOCAL, epoch, (LOCAL,), replicas=(LOCAL,)), LOCAL, 0.0)


def test_a_source_that_was_cut_stops_the_link(source: Partition, target: Partition) -> None:
    for value in (b"a", b"b", b"c"):
        append(source, value)
    linked = linked_to(target)
    copy_all(source, linked)
    cut(source, 1, 41)
    assert exchange(source, linked) == LinkOutcome.STOPPED
    assert linked.stopped is not None
    assert "lost records" in linked.stopped
    assert linked.fetch_position() is None
    assert target.log.end_offset == 3


def test_a_source_that_was_cut_and_has_grown_again_stops_the_link(
    source: Partition, target: Partition
) -> None:
    """Its end says nothing any more; the epoch of the last batch does."""
    for value in (b"a", b"b", b"c"):
        append(source, value)
    linked = linked_to(target)
    copy_all(source, linked)
    cut(source, 1, 41)
    for value in (b"x", b"y", b"z", b"more"):
        append(source, value)
    assert exchange(source, linked) == LinkOutcome.STOPPED
    assert linked.stopped is not None
    assert "another history" in linked.stopped


def test_a_new_leader_here_finds_it_too_without_knowing_the_epoch(
    source: Partition, target: Partition
) -> None:
    for value in (b"a", b"b", b"c"):
        append(source, value)
    copy_all(source, linked_to(target))
    cut(source, 1, 41)
    for value in (b"x", b"y", b"z", b"more"):
        append(source, value)
    linked = linked_to(target)
    assert exchange(source, linked) == LinkOutcome.STOPPED
    assert linked.stopped is not None
    assert "another one at the source" in linked.stopped


def test_one_that_is_shorter_than_the_copy_stops_a_new_leader(source: Partition, target: Partition) -> None:
    for value in (b"a", b"b", b"c"):
        append(source, value)
    copy_all(source, linked_to(target))
    cut(source, 1, 41)
    linked = linked_to(target)
    assert exchange(source, linked) == LinkOutcome.STOPPED
    assert "ends at offset 1" in str(linked.stopped)


def test_a_new_leader_there_that_does_not_know_yet_what_is_committed_is_waited_for(
    source: Partition, target: Partition
) -> None:
    append(source, b"a")
    append(source, b"b")
    copy_all(source, linked_to(target))
    linked = linked_to(target)
    position = linked.fetch_position()
    assert position is not None
    behind = answer(high_watermark=1, log_start=0)
    assert linked.on_fetched(position, behind, NOW) == LinkOutcome.BACK_OFF
    assert linked.stopped is None
    assert copy_all(source, linked) == LinkOutcome.UP_TO_DATE


def test_retention_there_overtakes_the_copy_and_that_is_counted(source: Partition, target: Partition) -> None:
    append(source, b"a")
    linked = linked_to(target)
    copy_all(source, linked)
    for value in (b"b", b"c", b"d"):
        append(source, value)
    source.delete_records_before(3)
    assert copy_all(source, linked) == LinkOutcome.APPENDED
    assert (target.log.log_start_offset, target.log.end_offset, target.high_watermark) == (3, 4, 4)
    assert linked.lost_records == 2


def test_an_empty_source_that_does_not_begin_at_0(source: Partition, target: Partition) -> None:
    """A group's offset, and the next record, mean the same on both sides."""
    append(source, b"a")
    append(source, b"b")
    source.delete_records_before(2)
    linked = linked_to(target)
    exchange(source, linked)
    assert (target.log.log_start_offset, target.log.end_offset, target.high_watermark) == (2, 2, 2)
    assert linked.lost_records == 0


def test_a_source_that_begins_inside_a_batch(source: Partition, target: Partition) -> None:
    append(source, b"a", b"b", b"c")
    source.delete_records_before(1)
    linked = linked_to(target)
    assert copy_all(source, linked) == LinkOutcome.APPENDED
    assert (target.log.log_start_offset, target.log.end_offset) == (1, 3)


def test_deletions_there_are_followed(source: Partition, target: Partition) -> None:
    append(source, b"a")
    append(source, b"b")
    linked = linked_to(target)
    copy_all(source, linked)
    source.delete_records_before(1)
    exchange(source, linked)
    assert target.log.log_start_offset == 1


def test_what_is_damaged_on_its_way_is_asked_for_again(source: Partition, target: Partition) -> None:
    append(source, b"a")
    linked = linked_to(target)
    sent, data = linked.fetch_position(), served(source, linked)
    assert sent is not None
    broken = bytearray(data.records)
    broken[-1] ^= 1
    damaged = data._replace(records=memoryview(broken))
    assert linked.on_fetched(sent, damaged, NOW) == LinkOutcome.BACK_OFF
    assert (linked.corrupt_answers, target.log.end_offset) == (1, 0)
    assert linked.error_code == ErrorCode.CORRUPT_MESSAGE, "people can see why it does not get on"
    assert exchange(source, linked) == LinkOutcome.APPENDED
    assert not linked.error_code


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, LinkOutcome.LEADER),
        (ErrorCode.UNKNOWN_TOPIC_ID, LinkOutcome.LEADER),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, LinkOutcome.BACK_OFF),
        (ErrorCode.OFFSET_OUT_OF_RANGE, LinkOutcome.RANGE),
    ],
)
def test_errors_of_the_source(target: Partition, code: ErrorCode, outcome: LinkOutcome) -> None:
    linked = linked_to(target)
    sent = linked.fetch_position()
    assert sent is not None
    assert linked.on_fetched(sent, answer(error=int(code)), NOW) == outcome
    assert linked.error_code == code


def test_a_sealed_log_refuses_clients_and_takes_what_is_copied(source: Partition, target: Partition) -> None:
    target.log.seal("it is a copy")
    with pytest.raises(PolicyViolation, match="it is a copy"):
        append(target, b"mine")
    append(source, b"a")
    exchange(source, linked_to(target))
    target.log.update_config(target.log.config)
    with pytest.raises(PolicyViolation):
        append(target, b"mine")
    target.log.seal(None)
    assert append(target, b"mine") == 1
    assert visible(target) == 2


def test_first_batches_of_two_clusters_producers_are_no_duplicates(
    source: Partition, target: Partition
) -> None:
    """Without `forget_before` the record of here would be answered as one that is there already, and be
    lost."""
    first = {"producer_id": 4, "producer_epoch": 0, "base_sequence": 0}
    append(source, b"there", **first)
    exchange(source, linked_to(target))
    batch, header = batch_of(b"here", **first)
    assert target.log.producers.check(header) is not None
    target.log.producers.forget_before(target.log.end_offset)
    assert target.append(batch, header, acks=1, now_ms=NOW).base_offset == 1
    target.log.producers.forget_before(1)  # as the next leader does: what is of here stays known
    again, header = batch_of(b"here", **first)
    assert target.append(again, header, acks=1, now_ms=NOW).duplicate


def test_how_far_a_topic_is_that_is_gone_nobody_says(source: Partition, target: Partition) -> None:
    append(source, b"a")
    linked = linked_to(target)
    copy_all(source, linked)
    assert linked.lag == 0
    sent = linked.fetch_position()
    assert sent is not None
    linked.on_fetched(sent, answer(error=int(ErrorCode.UNKNOWN_TOPIC_ID)), NOW)
    assert linked.lag == -1
    copy_all(source, linked)
    assert linked.lag == 0, "it was heard of again"

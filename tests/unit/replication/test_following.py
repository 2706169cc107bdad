"""What a partition does with its leader's answers: it copies, cuts, waits, and drops what is not its own."""

from __future__ import annotations

import pytest

from headrace.core.errors import NotLeader, StorageError
from headrace.log.checkpoint_writer import DirectoryCheckpoints
from headrace.protocol.error_codes import ErrorCode
from headrace.replication.following import FetchOutcome, FetchPosition
from headrace.replication.partition import Partition
from headrace.replication.replica import Role
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW, read_records, values_of
from tests.unit.replication.replicas import (
    Listener,
    answer,
    append,
    copy,
    fetched,
    finish_truncation,
    new_partition,
    row,
)


@pytest.fixture
def leader() -> Partition:
    partition = new_partition()
    partition.assign(row(1, 1, (1, 2)), 1, 0.0)
    return partition


@pytest.fixture
def follower() -> Partition:
    partition = new_partition()
    partition.assign(row(1, 1, (1, 2)), 2, 0.0)
    return partition


def values(partition: Partition) -> list[bytes | None]:
    return values_of(read_records(partition.log))


def apply(follower: Partition, **said: object) -> FetchOutcome:
    sent = follower.fetch_position()
    assert sent is not None
    return fetched(follower, sent, answer(**said))  # type: ignore[arg-type]  # keywords of a test


def test_a_follower_says_where_it_is_and_in_which_epoch(leader: Partition, follower: Partition) -> None:
    assert follower.fetch_position() == FetchPosition(0, 1, -1, 0)
    append(leader, b"a", b"b")
    assert copy(leader, follower) == FetchOutcome.APPENDED
    assert follower.fetch_position() == FetchPosition(2, 1, 1, 0)
    assert values(follower) == [b"a", b"b"]
    assert copy(leader, follower) == FetchOutcome.UP_TO_DATE


def test_who_does_not_follow_asks_for_nothing(leader: Partition, follower: Partition) -> None:
    assert leader.fetch_position() is None
    follower.assign(row(-1, 2), 2, 0.0)
    assert follower.role == Role.IDLE
    assert follower.fetch_position() is None
    sent = FetchPosition(0, 1, -1, 0)
    assert follower.on_fetched(sent, answer(leader), NOW) == FetchOutcome.STALE


def test_the_high_watermark_is_the_leaders_as_far_as_the_log_reaches(
    leader: Partition, follower: Partition
) -> None:
    append(leader, b"a")
    copy(leader, follower)
    assert follower.high_watermark == 0
    copy(leader, follower)
    assert (leader.high_watermark, follower.high_watermark) == (1, 1)
    apply(follower, high_watermark=7)
    assert follower.high_watermark == 1, "never past its own end"
    apply(follower, high_watermark=0)
    assert follower.high_watermark == 1, "never back"


def test_the_lag_is_counted_to_what_the_leader_has_committed(leader: Partition, follower: Partition) -> None:
    append(leader, b"a")
    copy(leader, follower)
    assert (leader.lag, follower.lag) == (0, 0)
    apply(follower, high_watermark=7)
    assert follower.lag == 6


def test_readers_at_a_follower_hear_of_its_high_watermark(leader: Partition, follower: Partition) -> None:
    listener = Listener()
    follower.watch(listener)
    append(leader, b"a")
    copy(leader, follower)
    assert listener.committed == []
    copy(leader, follower)
    assert len(listener.committed) == 1
    follower.check_read(1)
    follower.check_read(-1)


@pytest.mark.parametrize(
    "sent",
    [
        FetchPosition(1, 0, 1, 0),
        FetchPosition(0, 1, 1, 0),
        FetchPosition(2, 1, 1, 0),
        FetchPosition(1, 1, 0, 0),
    ],
)
def test_an_answer_to_another_position_is_dropped(
    leader: Partition, follower: Partition, sent: FetchPosition
) -> None:
    """Rule 8: an earlier epoch, an earlier or later end, another last epoch."""
    append(leader, b"a")
    copy(leader, follower)
    append(leader, b"b")
    assert follower.on_fetched(sent, answer(leader, 1), NOW) == FetchOutcome.STALE
    assert follower.on_fetched(sent, answer(diverging=(1, 0)), NOW) == FetchOutcome.STALE
    assert values(follower) == [b"a"]


def test_a_new_epoch_of_the_same_leader_is_followed_anew(leader: Partition, follower: Partition) -> None:
    append(leader, b"a")
    copy(leader, follower)
    before = follower.fetch_position()
    follower.assign(row(1, 2), 2, 0.0)
    assert before is not None
    assert follower.on_fetched(before, answer(leader, 1), NOW) == FetchOutcome.STALE
    assert follower.fetch_position() == FetchPosition(1, 2, 1, 0)


def test_a_change_of_the_row_alone_interrupts_nothing(leader: Partition, follower: Partition) -> None:
    append(leader, b"a")
    sent = follower.fetch_position()
    assert sent is not None
    follower.assign(row(1, 1, (1,), version=11), 2, 0.0)
    assert follower.isr == (1,)
    assert follower.on_fetched(sent, answer(leader), NOW) == FetchOutcome.APPENDED


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ((1, 2), [b"a", b"b"]),
        ((1, 3), [b"a", b"b"]),
        ((1, 1), [b"a"]),
        ((3, 3), [b"a", b"b", b"c"]),
        ((0, 0), []),
        ((0, 1), []),
    ],
)
def test_a_divergence_cuts_to_the_smaller_end_of_that_epoch(told: tuple[int, int], left: list[bytes]) -> None:
    """Rule 1. Here epoch 1 ends at 2, epoch 3 at 4; the leader says where it ended there."""
    partition = new_partition()
    for epoch, records in ((1, (b"a", b"b")), (3, (b"c", b"d"))):
        partition.assign(row(2, epoch, (2,), replicas=(2,)), 2, 0.0)
        for record in records:
            append(partition, record)
    assert partition.high_watermark == 4
    partition.assign(row(1, 5), 2, 0.0)
    assert apply(partition, diverging=told) == FetchOutcome.TRUNCATING
    assert values(partition) == left
    assert partition.high_watermark == len(left)


def test_a_divergence_that_cuts_nothing_is_not_asked_about_at_once_again(
    leader: Partition, follower: Partition
) -> None:
    append(leader, b"a")
    copy(leader, follower)
    assert apply(follower, diverging=(1, 5)) == FetchOutcome.BACK_OFF
    assert values(follower) == [b"a"]


def test_a_last_batch_that_says_a_later_epoch_than_the_leaders_is_fetched_again(
    leader: Partition, follower: Partition
) -> None:
    """No checksum covers it. The follower asked without end, and could not join the ISR."""
    append(leader, b"a", b"b")
    copy(leader, follower)
    append(leader, b"c")
    copy(leader, follower)
    follower.log.begin_epoch(1030, 2)
    assert copy(leader, follower) == FetchOutcome.TRUNCATING
    assert values(follower) == [b"a", b"b"]
    assert copy(leader, follower) == FetchOutcome.APPENDED
    assert values(follower) == [b"a", b"b", b"c"]
    assert follower.log.latest_epoch == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, FetchOutcome.WAIT_FOR_METADATA),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, FetchOutcome.WAIT_FOR_METADATA),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, FetchOutcome.WAIT_FOR_METADATA),
        (ErrorCode.KAFKA_STORAGE_ERROR, FetchOutcome.BACK_OFF),
        (ErrorCode.UNKNOWN_TOPIC_ID, FetchOutcome.BACK_OFF),
    ],
)
def test_errors_change_nothing(
    leader: Partition, follower: Partition, error: ErrorCode, outcome: FetchOutcome
) -> None:
    append(leader, b"a")
    copy(leader, follower)
    assert apply(follower, error=int(error), high_watermark=1, log_start=1) == outcome
    assert values(follower) == [b"a"]
    assert (follower.high_watermark, follower.log.log_start_offset) == (0, 0)


def test_a_log_that_ends_before_its_leaders_begins_starts_anew(follower: Partition) -> None:
    out_of_range = int(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert apply(follower, error=out_of_range, log_start=7) == FetchOutcome.TRUNCATING
    assert follower.fetch_position() == FetchPosition(7, 1, -1, 7)
    assert follower.high_watermark == 7
    assert apply(follower, error=out_of_range, log_start=5) == FetchOutcome.TRUNCATING
    assert follower.fetch_position() == FetchPosition(5, 1, -1, 5), "it holds nothing that could be lost"


def test_a_log_that_ends_after_its_leaders_is_cut_by_epochs_only(
    leader: Partition, follower: Partition
) -> None:
    append(leader, b"a", b"b")
    copy(leader, follower)
    out_of_range = int(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert apply(follower, error=out_of_range, log_start=0) == FetchOutcome.BACK_OFF
    assert apply(follower, error=out_of_range, log_start=-1) == FetchOutcome.BACK_OFF
    assert values(follower) == [b"a", b"b"]


def delete_two_of_three(leader: Partition, follower: Partition) -> None:
    """Both have them, and both have heard of it."""
    for value in (b"a", b"b", b"c"):
        append(leader, value)
    copy(leader, follower)
    copy(leader, follower)
    leader.delete_records_before(2)
    copy(leader, follower)


def test_a_follower_deletes_what_its_leader_deleted(leader: Partition, follower: Partition) -> None:
    delete_two_of_three(leader, follower)
    assert follower.log.log_start_offset == 2
    apply(follower, high_watermark=3, log_start=9)
    assert follower.log.log_start_offset == 3, "nothing that is not committed"


def test_a_follower_reports_a_log_start_that_a_restart_would_find(
    leader: Partition, follower: Partition
) -> None:
    """Whoever deleted the records is told that they are gone when every replica has said so."""
    delete_two_of_three(leader, follower)
    position = follower.fetch_position()
    assert position is not None
    assert (follower.log.log_start_offset, position.log_start_offset) == (2, 0)
    job = DirectoryCheckpoints(follower.log.directory).take([follower.log], None)
    job.run()
    assert job.done() == [follower.log]
    assert follower.fetch_position() == position._replace(log_start_offset=2)


def test_a_log_may_begin_inside_a_batch(leader: Partition, follower: Partition) -> None:
    """DeleteRecords names any offset; a batch cannot be cut in two, so the follower begins with it whole."""
    append(leader, b"a", b"b", b"c")
    leader.on_replica_fetch(2, 100, 3, 0.0)
    leader.delete_records_before(2)
    apply(follower, error=int(ErrorCode.OFFSET_OUT_OF_RANGE), log_start=2)
    assert copy(leader, follower) == FetchOutcome.TRUNCATING
    assert follower.log.end_offset == 3
    assert (follower.log.log_start_offset, follower.high_watermark) == (2, 3)


def test_a_damaged_answer_is_not_appended(leader: Partition, follower: Partition) -> None:
    append(leader, b"a")
    good = bytes(answer(leader).records)
    bad = bytearray(good)
    bad[-1] ^= 1
    assert apply(follower, records=bytes(bad), high_watermark=1) == FetchOutcome.BACK_OFF
    assert (follower.log.end_offset, follower.high_watermark, follower.corrupt_answers) == (0, 0, 1)
    assert apply(follower, records=good, high_watermark=1) == FetchOutcome.APPENDED
    assert follower.high_watermark == 1


def test_a_damaged_answer_does_not_move_the_start_of_an_empty_log_back(
    leader: Partition, follower: Partition
) -> None:
    """It would give the offsets before it away once more, if this replica led next."""
    append(leader, b"a", b"b", b"c")
    append(leader, b"d")
    leader.on_replica_fetch(2, 100, 4, 0.0)
    leader.delete_records_before(2)
    apply(follower, error=int(ErrorCode.OFFSET_OUT_OF_RANGE), log_start=2)
    bad = bytearray(answer(leader, 2).records)
    bad[-1] ^= 1
    assert apply(follower, records=bytes(bad), high_watermark=2) == FetchOutcome.BACK_OFF
    log = follower.log
    assert (log.log_start_offset, log.end_offset, follower.high_watermark) == (2, 2, 2)


def test_nothing_of_a_later_epoch_than_the_answers_is_appended(
    leader: Partition, follower: Partition
) -> None:
    """A range of a file is sent when its turn comes. A leader that has been deposed since, and has cut its
    log, sends what is there now. Batches of a later epoch need not follow what this log ends with."""
    append(leader, b"a")
    copy(leader, follower)
    later = new_partition()
    later.assign(row(1, 2, (1,)), 1, 0.0)
    append(later, b"x")
    append(later, b"y")
    assert apply(follower, records=bytes(answer(later, 1).records), high_watermark=2) == FetchOutcome.BACK_OFF
    assert values(follower) == [b"a"]
    assert follower.log.latest_epoch == 1


def test_a_log_that_begins_after_its_leaders_end_goes_on_where_that_one_ends() -> None:
    """After an unclean election: what the leader writes there next is committed, and must not be skipped."""
    leader, follower = new_partition(), new_partition()
    for each in (leader, follower):
        each.assign(row(1, 1, (1,)), 1, 0.0)
    for number in range(4):
        append(follower, b"lost %d" % number)
    follower.delete_records_before(3)
    append(leader, b"a")
    follower.assign(row(1, 2, (1,)), 2, 0.0)
    leader.assign(row(1, 2, (1,)), 1, 0.0)
    assert copy(leader, follower) == FetchOutcome.TRUNCATING
    for number in range(5):
        append(leader, b"new %d" % number)
    for _ in range(3):
        copy(leader, follower)
    assert values(follower)[-5:] == [b"new %d" % number for number in range(5)]


def test_a_cut_last_batch_is_left_for_the_next_answer(leader: Partition, follower: Partition) -> None:
    append(leader, b"a")
    append(leader, b"b")
    whole = bytes(answer(leader).records)
    assert apply(follower, records=whole[:-5]) == FetchOutcome.APPENDED
    assert values(follower) == [b"a"]
    assert apply(follower, records=whole[-70:-60]) == FetchOutcome.UP_TO_DATE


def test_what_is_not_synced_is_not_reported(leader: Partition) -> None:
    follower = new_partition(flush_messages=1)
    follower.assign(row(1, 1, (1, 2)), 2, 0.0)
    append(leader, b"a")
    copy(leader, follower)
    assert follower.must_sync_before_ack
    assert follower.fetch_position() is None
    follower.log.flush()
    assert follower.fetch_position() == FetchPosition(1, 1, 1, 0)


def test_a_leader_that_must_sync_commits_what_is_synced() -> None:
    leader = new_partition(flush_messages=1)
    leader.assign(row(1, 1, (1,), replicas=(1,)), 1, 0.0)
    append(leader, b"a")
    assert leader.high_watermark == 0
    leader.log.flush()
    assert leader.high_watermark == 1


def test_who_takes_over_with_records_that_are_not_synced_waits_for_the_disk(leader: Partition) -> None:
    partition = new_partition(flush_messages=1)
    partition.assign(row(1, 1, (1, 2)), 2, 0.0)
    append(leader, b"a")
    copy(leader, partition)
    partition.assign(row(2, 2, (2,)), 2, 0.0)
    assert (partition.high_watermark, partition.knows_the_end) == (0, False)
    partition.log.flush()
    assert (partition.high_watermark, partition.knows_the_end) == (1, True)


def test_nobody_leads_or_follows_with_a_log_that_is_offline(leader: Partition) -> None:
    disk = SimulatedDisk()
    partition = new_partition(disk)
    partition.assign(row(1, 1, (1, 2)), 2, 0.0)
    append(leader, b"a")
    disk.faults.append(Fault("pwrite", "/data", 5))
    with pytest.raises(StorageError):
        copy(leader, partition)
    assert partition.fetch_position() is None
    for epoch, chosen in ((2, 1), (3, 2)):
        partition.assign(row(chosen, epoch, (1, 2)), 2, 0.0)
        assert partition.role == Role.IDLE


def test_a_leader_whose_disk_fails_commits_nothing_more() -> None:
    disk = SimulatedDisk()
    partition = new_partition(disk)
    partition.assign(row(1, 1, (1, 2)), 1, 0.0)
    append(partition, b"a")
    disk.faults.append(Fault("pwrite", "/data", 5))
    with pytest.raises(StorageError):
        append(partition, b"b")
    partition.on_replica_fetch(2, 100, 1, 0.0)
    assert partition.high_watermark == 0


def test_a_checkpointed_high_watermark_is_where_a_replica_begins() -> None:
    disk = SimulatedDisk()
    partition = new_partition(disk)
    partition.assign(row(1, 1, (1,), replicas=(1,)), 1, 0.0)
    append(partition, b"a", b"b")
    noted = partition.log.first_batch
    partition.log.close()
    assert new_partition(disk, first_batch=noted, high_watermark=1).high_watermark == 1
    assert new_partition(disk, first_batch=noted, high_watermark=9).high_watermark == 2, "never past the end"
    assert new_partition(disk, first_batch=noted).high_watermark == 0


def test_readers_are_woken_by_what_was_copied_in_an_earlier_epoch(
    leader: Partition, follower: Partition
) -> None:
    append(leader, b"a")
    copy(leader, follower)
    follower.assign(row(1, 2), 2, 0.0)
    listener = Listener()
    follower.watch(listener)
    apply(follower, high_watermark=1)
    assert listener.committed == [1]


# --- while a thread truncates the log ---


def diverged() -> Partition:
    """A follower in epoch 5 whose records of epoch 3 are about to be cut off."""
    partition = new_partition()
    for epoch, record in ((1, b"a"), (3, b"b")):
        partition.assign(row(2, epoch, (2,), replicas=(2,)), 2, 0.0)
        append(partition, record)
    partition.assign(row(1, 5), 2, 0.0)
    sent = partition.fetch_position()
    assert sent is not None
    assert partition.on_fetched(sent, answer(diverging=(1, 1)), NOW) == FetchOutcome.TRUNCATING
    return partition


def test_a_log_that_is_being_truncated_is_neither_asked_for_nor_read_nor_written() -> None:
    partition = diverged()
    log = partition.log
    assert partition.fetch_position() is None
    assert partition.on_fetched(FetchPosition(2, 5, 3, 0), answer(), NOW) == FetchOutcome.STALE
    for use in (
        lambda: log.read(0, 100, limit=2, min_one=True),
        lambda: log.append_as_follower(b""),
        lambda: log.offset_for_timestamp(0, 2),
        lambda: log.take_truncation(0),
    ):
        with pytest.raises(NotLeader, match="is being truncated"):
            use()
    assert log.take_flush() is None
    finish_truncation(partition)
    assert values(partition) == [b"a"]
    assert partition.fetch_position() == FetchPosition(1, 5, 1, 0)
    assert partition.high_watermark == 1


def test_who_is_elected_meanwhile_leads_when_the_log_is_cut() -> None:
    partition = diverged()
    partition.assign(row(2, 6, (2,), replicas=(2,)), 2, 0.0)
    assert partition.role == Role.IDLE
    finish_truncation(partition)
    assert partition.is_leader
    assert partition.leader_epoch == 6
    append(partition, b"c")
    assert values(partition) == [b"a", b"c"]


def test_a_change_of_the_row_alone_is_followed_when_the_log_is_cut() -> None:
    partition = diverged()
    partition.assign(row(1, 5, (1,), version=51), 2, 0.0)
    assert partition.role == Role.FOLLOWER
    finish_truncation(partition)
    assert partition.isr == (1,)
    assert partition.role == Role.FOLLOWER


def test_who_resigns_meanwhile_stays_so() -> None:
    partition = diverged()
    partition.assign(row(2, 6, (2,), replicas=(2,)), 2, 0.0)
    partition.resign()
    finish_truncation(partition)
    assert partition.role == Role.IDLE


def test_a_log_that_is_deleted_while_it_is_truncated_touches_nothing_any_more() -> None:
    partition = diverged()
    log, disk = partition.log, partition.log.directory.disk
    before = {name: disk.size(f"{log.path}/{name}") for name in disk.list(log.path)}
    log.abandon()
    finish_truncation(partition)
    assert {name: disk.size(f"{log.path}/{name}") for name in disk.list(log.path)} == before
    assert not log.is_open

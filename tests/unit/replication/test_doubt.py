"""What a follower finds after a crash and nothing vouches for: it is compared before it counts (rule 13)."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.core.errors import OffsetOutOfRange
from headrace.protocol.error_codes import ErrorCode
from headrace.replication.following import IN_DOUBT, FetchOutcome, FetchPosition
from headrace.replication.partition import Partition
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, read_records, values_of
from tests.unit.replication.replicas import answer, append, fetched, new_partition, row, visible


@pytest.fixture
def leader() -> Partition:
    partition = new_partition()
    partition.assign(row(1, 1), 1, 0.0)
    append(partition, b"a")
    append(partition, b"b")
    return partition


def follower_with(*values: bytes, epoch: int = 1) -> Partition:
    """It was killed with these, before anything was noted of them."""
    disk = SimulatedDisk()
    before = new_partition(disk)
    before.assign(row(2, epoch), 2, 0.0)
    for value in values:
        append(before, value)
    disk.kill()
    found = new_partition(disk)
    found.assign(row(1, epoch), 2, 0.0)
    return found


def ask(follower: Partition, leader: Partition, **said: Any) -> FetchOutcome:
    """What the leader has there, or exactly what is said."""
    sent = follower.fetch_position()
    assert sent is not None
    if said:
        return fetched(follower, sent, answer(**said))
    return fetched(follower, sent, answer(leader, sent.fetch_offset)._replace(high_watermark=2))


def content(leader: Partition) -> bytes:
    records = leader.read_as_replica(0, 1 << 20)
    return records.file.pread(records.length, records.position)


def test_it_asks_for_the_first_batch_and_says_nothing_of_itself() -> None:
    assert follower_with(b"a", b"b").fetch_position() == FetchPosition(0, 1, 1, IN_DOUBT)


def test_the_same_batch_settles_it(leader: Partition) -> None:
    follower = follower_with(b"a", b"b")
    assert ask(follower, leader) == FetchOutcome.STALE
    assert follower.high_watermark == 0, "what an answer for comparison says is not believed"
    assert follower.fetch_position() == FetchPosition(2, 1, 1, 0)
    assert ask(follower, leader) == FetchOutcome.UP_TO_DATE
    assert follower.high_watermark == 2


def test_another_batch_makes_it_ask_whether_the_logs_part_and_then_it_disagrees(leader: Partition) -> None:
    follower = follower_with(b"x", b"y")
    told: list[Partition] = []
    follower.on_disagreement = told.append
    for _ in range(4):
        assert ask(follower, leader) == FetchOutcome.STALE
        assert follower.fetch_position() == FetchPosition(2, 1, 1, IN_DOUBT)
        assert ask(follower, leader) == FetchOutcome.BACK_OFF
        assert follower.fetch_position() == FetchPosition(0, 1, 1, IN_DOUBT)
    assert not told, "the leader may find that it is the one with damage"
    for _ in range(2):
        ask(follower, leader)
    assert told == [follower]
    assert values_of(read_records(follower.log)) == [b"x", b"y"], "nothing was appended or cut"


def test_logs_that_part_are_cut_as_ever(leader: Partition) -> None:
    follower = follower_with(b"x", b"y")
    ask(follower, leader)
    assert ask(follower, leader, diverging=(1, 0)) == FetchOutcome.TRUNCATING


def test_a_leader_with_nothing_there_is_asked_where_its_log_ends(leader: Partition) -> None:
    follower = follower_with(b"a", b"b")
    assert ask(follower, leader, records=b"") == FetchOutcome.STALE
    assert follower.fetch_position() == FetchPosition(2, 1, 1, IN_DOUBT)
    assert ask(follower, leader, records=b"") == FetchOutcome.STALE, "it has as much, and can be compared"
    assert follower.fetch_position() == FetchPosition(0, 1, 1, IN_DOUBT)


def test_an_answer_that_had_no_room_keeps_its_question(leader: Partition) -> None:
    """Other partitions fill the answers. A question that changes loses its turn each time."""
    follower = follower_with(b"a", b"b")
    for _ in range(3):
        assert ask(follower, leader, records=b"", high_watermark=2) == FetchOutcome.STALE
        assert follower.fetch_position() == FetchPosition(0, 1, 1, IN_DOUBT)


def test_what_is_doubted_is_not_committed_whatever_was_noted() -> None:
    """Consumers may read followers, and retention deletes what is committed: also of another log."""
    disk = SimulatedDisk()
    before = new_partition(disk)
    before.assign(row(2, 1), 2, 0.0)
    for value in (b"x", b"y"):
        append(before, value, timestamp=NOW - 10_000_000)
    disk.kill()
    found = new_partition(disk, high_watermark=2, retention_ms=1000)
    found.assign(row(1, 1), 2, 0.0)
    found.check_read(1)
    assert visible(found) == 0
    for _ in range(2):
        found.log.enforce_retention(NOW, found.high_watermark)
        found.log.flush()
    assert found.log.log_start_offset == 0
    assert found.fetch_position() == FetchPosition(0, 1, 1, IN_DOUBT)


def test_what_is_damaged_at_the_leader_is_for_others_to_judge(leader: Partition) -> None:
    """The leader may wait for this very replica to mend it."""
    follower = follower_with(b"a", b"b")
    told: list[Partition] = []
    follower.on_disagreement = told.append
    for _ in range(4):
        assert ask(follower, leader, error=int(ErrorCode.KAFKA_STORAGE_ERROR)) == FetchOutcome.BACK_OFF
    assert (told, follower.cannot_compare) == ([], False), "its disk may fail, and then another leads"
    ask(follower, leader, error=int(ErrorCode.KAFKA_STORAGE_ERROR))
    assert (told, follower.cannot_compare) == ([follower], True)
    assert (
        ask(follower, leader, error=int(ErrorCode.NOT_LEADER_OR_FOLLOWER)) == FetchOutcome.WAIT_FOR_METADATA
    )
    assert (told, follower.cannot_compare) == ([follower], False)
    follower.log.vouch()
    assert follower.fetch_position() == FetchPosition(2, 1, 1, 0)


def test_a_damaged_batch_proves_nothing(leader: Partition) -> None:
    follower = follower_with(b"a", b"b")
    damaged = bytearray(content(leader))
    damaged[65] ^= 1
    assert ask(follower, leader, records=bytes(damaged)) == FetchOutcome.BACK_OFF
    assert follower.corrupt_answers == 1
    assert follower.fetch_position() == FetchPosition(0, 1, 1, IN_DOUBT)


OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)


@pytest.mark.parametrize("start", [2, 7], ids=["all of it", "more"])
def test_what_the_leader_has_deleted_cannot_be_compared(leader: Partition, start: int) -> None:
    follower = follower_with(b"a", b"b")
    assert ask(follower, leader, error=OUT_OF_RANGE, log_start=start) == FetchOutcome.TRUNCATING


def test_what_the_leader_begins_with_is_compared_if_it_has_deleted_a_part(leader: Partition) -> None:
    """A follower gave up the only good copy, because the first batch was gone at the leader."""
    follower = follower_with(b"a", b"b")
    assert ask(follower, leader, error=OUT_OF_RANGE, log_start=1) == FetchOutcome.STALE
    assert follower.fetch_position() == FetchPosition(1, 1, 1, IN_DOUBT)
    assert ask(follower, leader) == FetchOutcome.STALE
    assert follower.fetch_position() == FetchPosition(2, 1, 1, 0)


def test_another_log_is_found_out_there_too(leader: Partition) -> None:
    follower = follower_with(b"a", b"y")
    told: list[Partition] = []
    follower.on_disagreement = told.append
    assert ask(follower, leader, error=OUT_OF_RANGE, log_start=1) == FetchOutcome.STALE
    for _ in range(10):
        ask(follower, leader)
    assert told[:1] == [follower]
    assert follower.log.doubtful is not None


def test_what_is_not_in_memory_is_not_waited_for(leader: Partition) -> None:
    follower = follower_with(b"a", b"b")
    told: list[Partition] = []
    follower.on_disagreement = told.append
    disk = follower.log.directory.disk
    assert isinstance(disk, SimulatedDisk)
    disk.cold.add(follower.log.segments[0].path(".log"))
    for _ in range(5):
        assert not told
        assert ask(follower, leader, error=OUT_OF_RANGE, log_start=1) == FetchOutcome.BACK_OFF
    assert (told, follower.is_out_of_reach) == ([follower], True)


def test_a_leader_that_deletes_more_meanwhile_is_asked_for_what_it_has_then(leader: Partition) -> None:
    follower = follower_with(b"a", b"b", b"c")
    assert ask(follower, leader, error=OUT_OF_RANGE, log_start=1) == FetchOutcome.STALE
    assert ask(follower, leader, error=OUT_OF_RANGE, log_start=2) == FetchOutcome.STALE
    assert follower.fetch_position() == FetchPosition(2, 1, 1, IN_DOUBT)


def test_what_the_leader_has_deleted_is_passed_over_where_more_is_left() -> None:
    """Retention went on while this one was away: what it doubts first is gone at the leader."""
    disk = SimulatedDisk()
    before = new_partition(disk, segment_bytes=100)
    before.assign(row(2, 1), 2, 0.0)
    for value in (b"a", b"b", b"c"):
        append(before, value)
    disk.kill()
    follower = new_partition(disk, segment_bytes=100)
    follower.assign(row(1, 1), 2, 0.0)
    told: list[Partition] = []
    follower.on_disagreement = told.append
    for start in (1, 2):
        said = answer(error=OUT_OF_RANGE, log_start=2)
        sent = follower.fetch_position()
        assert sent is not None
        assert fetched(follower, sent, said) == FetchOutcome.STALE
        assert follower.fetch_position() == FetchPosition(start, 1, 1, IN_DOUBT)
    assert follower.log.log_start_offset == 0, "nothing else is believed yet"
    assert not told


def test_who_comes_to_lead_has_the_log() -> None:
    partition = follower_with(b"a")
    assert partition.log.doubtful is not None
    partition.assign(row(2, 2), 2, 0.0)
    assert partition.log.doubtful is None


def test_a_fetch_in_doubt_counts_for_nothing(leader: Partition) -> None:
    leader.on_replica_fetch(2, 100, 2, 0.0, IN_DOUBT)
    leader.on_replica_fetch(3, 100, 2, 0.0, 0)
    assert leader.high_watermark == 0, "broker 2 has said nothing yet"
    leader.on_replica_fetch(2, 100, 2, 0.0, 0)
    assert leader.high_watermark == 2


def test_a_fetch_in_doubt_beyond_the_end_is_told_so(leader: Partition) -> None:
    with pytest.raises(OffsetOutOfRange):
        leader.on_replica_fetch(2, 100, 3, 0.0, IN_DOUBT)


def test_an_answer_to_another_question_is_dropped(leader: Partition) -> None:
    follower = follower_with(b"a", b"b")
    sent = FetchPosition(2, 1, 1, 0)
    assert follower.on_fetched(sent, answer(leader), NOW) == FetchOutcome.STALE
    assert follower.log.doubtful is not None

"""A log with gaps, as compaction leaves it: read, copied, cut and opened again at every offset."""

from __future__ import annotations

import pytest

from headrace.log.partition_log import PartitionLog
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.cleaner.material import compacted, new_log, put, run_pass
from tests.unit.log.invariants import check_invariants
from tests.unit.log.material import NOW, open_at, read_bytes, read_records, whole_batches

SMALL = {"segment_bytes": 500, "index_interval_bytes": 100}


@pytest.fixture
def log() -> PartitionLog:
    """Offsets 0 to 59, of which few are left; several epochs, several segments."""
    made = new_log(SimulatedDisk(), **SMALL)
    for number in range(60):
        key = b"rare-%d" % number if number % 9 == 0 else b"often-%d" % (number % 3)
        put(made, (key, bytes(40)), epoch=number // 13, timestamp=NOW + number)
    made.roll(NOW)
    put(made, (b"last", b""))
    run_pass(made)
    return made


def offsets(log: PartitionLog) -> list[int]:
    return [record.offset for record in read_records(log)]


def test_there_are_gaps(log: PartitionLog) -> None:
    assert offsets(log) == [0, 9, 18, 27, 36, 45, 54, 57, 58, 59, 60]


def test_a_read_in_a_gap_answers_with_what_follows(log: PartitionLog) -> None:
    left = offsets(log)
    for at in range(61):
        header, inside = whole_batches(read_bytes(log, at))[0]
        assert header.last_offset >= at
        found = [record.offset for record in inside if record.offset >= at]
        assert not found or found[0] == next(offset for offset in left if offset >= at)


def test_a_time_that_is_gone_leads_to_the_next(log: PartitionLog) -> None:
    left = offsets(log)[:-1]
    for number in range(60):
        found = log.offset_for_timestamp(NOW + number, log.end_offset)
        assert found is not None
        assert found.offset == next(offset for offset in left if offset >= number)


def test_a_follower_has_the_same_gaps_and_keeps_them_over_a_crash(log: PartitionLog) -> None:
    disk = SimulatedDisk()
    copy = open_at(disk, "/data", config=compacted(**SMALL))
    while copy.end_offset < log.end_offset:
        copy.append_as_follower(read_bytes(log, copy.end_offset, 300), now_ms=NOW)
    assert offsets(copy) == offsets(log)
    check_invariants(copy)
    copy.flush()
    disk.kill()
    for recovery_point in (copy.recovery_point, 40, 0):
        again = open_at(disk, "/data", config=compacted(**SMALL), recovery_point=recovery_point)
        assert offsets(again) == offsets(log)
        check_invariants(again)


def test_a_follower_that_is_killed_at_any_batch_loses_at_most_that_one(log: PartitionLog) -> None:
    """Nobody can confirm a jump of the very last batch; it is fetched again."""
    disk = SimulatedDisk()
    copy = open_at(disk, "/data", config=compacted(**SMALL))
    while copy.end_offset < log.end_offset:
        before = copy.end_offset
        copy.append_as_follower(read_bytes(log, copy.end_offset, 1), now_ms=NOW)
        disk.kill()
        copy = open_at(disk, "/data", config=compacted(**SMALL), recovery_point=before)
        assert copy.end_offset >= before
        if copy.end_offset == before:
            copy.append_as_follower(read_bytes(log, before, 1), now_ms=NOW)
            copy.flush()
            disk.kill()
            copy = open_at(disk, "/data", config=compacted(**SMALL), recovery_point=copy.end_offset)
    assert offsets(copy) == offsets(log)


@pytest.mark.parametrize("offset", range(0, 61, 3))
def test_it_can_be_cut_anywhere_and_opened_again(log: PartitionLog, offset: int) -> None:
    left = [at for at in offsets(log) if at < offset]
    log.truncate_to(offset)
    assert offsets(log) == left
    assert log.end_offset <= offset
    check_invariants(log)
    end, epochs = log.end_offset, list(log.epochs.entries)
    disk = log.directory.disk
    assert isinstance(disk, SimulatedDisk)
    disk.kill()
    again = open_at(disk, "/data", config=compacted(**SMALL), recovery_point=end)
    assert again.end_offset == end
    assert offsets(again) == left
    assert again.epochs.entries == epochs
    put(again, (b"new", b""), epoch=9)
    assert offsets(again) == [*left, end]

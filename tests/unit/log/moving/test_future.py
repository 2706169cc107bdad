"""The future replica while its log goes on: what is appended, removed, compacted or cut meanwhile."""

from __future__ import annotations

import pytest

from headrace.core.errors import DiskFull, NotLeader, StorageError
from headrace.log.cleaner.swap import SegmentSwap
from headrace.log.manager import LogManager
from headrace.log.moving.future import DamagedSource
from headrace.log.moving.plan import take_plan
from headrace.log.moving.swap import ReplicaSwap
from headrace.log.partition_log import PartitionLog
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.invariants import check_invariants
from tests.unit.log.material import NOW, append, read_records
from tests.unit.log.moving.world import (
    PARTITION,
    begin,
    copy_all,
    fill,
    folders,
    move,
    new_log,
    open_manager,
    swap,
)

RECORDS = 20


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(1)


@pytest.fixture
def manager(disk: SimulatedDisk) -> LogManager:
    return open_manager(disk)


@pytest.fixture
def log(manager: LogManager) -> PartitionLog:
    made = new_log(manager)
    fill(made, 0, RECORDS)
    return made


def numbers(log: PartitionLog) -> list[int]:
    return [int((record.value or b"")[:4]) for record in read_records(log)]


def test_a_replica_moves_with_everything_it_knows(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    target = manager.directories[1]
    assert move(manager, log, target)
    assert (log.directory, log.path) == (target, f"/b/{PARTITION}")
    assert numbers(log) == [*range(RECORDS)]
    assert log.recovery_point == log.synced_offset == RECORDS
    check_invariants(log)
    fill(log, RECORDS, RECORDS + 5)  # its producer is known: a sequence that does not follow is refused
    assert numbers(log) == [*range(RECORDS + 5)]
    assert folders(disk)["/b"] == [str(PARTITION)]
    assert folders(disk)["/a"] == folders(disk, ending="-delete")["/a"]
    manager.removals.remove(manager.removals.take_due(NOW + 1_000_000))
    assert folders(disk)["/a"] == []
    assert manager.get(PARTITION) is log


def test_it_is_found_there_after_a_clean_stop(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    move(manager, log, manager.directories[1])
    fill(log, RECORDS, RECORDS + 5)
    manager.shut_down(1, {PARTITION: RECORDS + 5})
    disk.crash(keep=0.0)
    again = open_manager(disk).get(PARTITION)
    assert again.directory.path == "/b"
    assert numbers(again) == [*range(RECORDS + 5)]


def test_an_empty_log_moves_too(manager: LogManager) -> None:
    log = new_log(manager)
    future = begin(manager, manager.directories[1])
    future.copy(take_plan(log), 1)
    assert swap(manager, log, future)
    fill(log, 0, 3)
    assert numbers(log) == [0, 1, 2]


def test_what_is_appended_meanwhile_is_copied_too(manager: LogManager, log: PartitionLog) -> None:
    future = begin(manager, manager.directories[1])
    for number in range(RECORDS, RECORDS + 10):
        future.copy(take_plan(log), 200)
        fill(log, number, number + 1)
    copy_all(log, future)
    assert future.lacks(take_plan(log)) == 0
    assert (future.end_offset, future.size) == (log.end_offset, log.size_bytes)
    assert swap(manager, log, future)
    assert numbers(log) == [*range(RECORDS + 10)]


def test_the_log_start_goes_with_it(disk: SimulatedDisk, manager: LogManager, log: PartitionLog) -> None:
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    log.delete_records_before(11)
    log.enforce_retention(NOW, RECORDS)
    copy_all(log, future)
    assert swap(manager, log, future)
    assert log.log_start_offset == 11
    disk.crash(keep=0.0)
    again = open_manager(disk).get(PARTITION)
    assert again.log_start_offset == 11
    assert numbers(again) == [*range(11, RECORDS)]


def test_a_truncation_makes_it_begin_anew(manager: LogManager, log: PartitionLog) -> None:
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    log.truncate_to(7)
    append(log, b"0777", leader_epoch=1)
    copy_all(log, future)
    assert future.end_offset == 8
    assert swap(manager, log, future)
    assert numbers(log) == [*range(7), 777]
    assert log.latest_epoch == 1


def test_a_segment_that_was_replaced_is_copied_again(manager: LogManager, log: PartitionLog) -> None:
    """As compaction does it: another file of the same name."""
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    old = log.segments[1]
    new = type(old)(log.directory, log.path, old.base_offset, created_ms=NOW)
    new.size = old.size
    log.replace_segments(1, 1, new)
    assert future.lacks(take_plan(log)) == new.size
    copy_all(log, future)
    assert future.lacks(take_plan(log)) == 0


def test_nothing_is_compacted_while_both_change_places(manager: LogManager, log: PartitionLog) -> None:
    cleaning = SegmentSwap(log, (log.segments[0],))
    valid = [cleaning.is_valid]
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    job = ReplicaSwap(manager, log, future, RECORDS, NOW)
    valid.append(cleaning.is_valid)
    job.run()
    job.switch()
    job.settle()
    job.done()
    valid.append(cleaning.is_valid)
    assert valid == [True, False, False]


def test_damage_is_not_copied(disk: SimulatedDisk, manager: LogManager, log: PartitionLog) -> None:
    path = log.segments[1].path(".log")
    disk.flip(path, 8 * 80)
    future = begin(manager, manager.directories[1])
    with pytest.raises(DamagedSource) as caught:
        copy_all(log, future)
    assert caught.value.offset == log.segments[1].base_offset
    assert numbers_until(log, caught.value.offset) == [*range(caught.value.offset)]
    future.remove()
    assert folders(disk)["/b"] == []


def numbers_until(log: PartitionLog, end: int) -> list[int]:
    return [int((record.value or b"")[:4]) for record in read_records(log, limit=end)]


def test_a_full_disk_ends_the_copy_and_nothing_else(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    future = begin(manager, manager.directories[1])
    disk.free = 500
    with pytest.raises(DiskFull):
        copy_all(log, future)
    future.remove()
    disk.free = 1 << 60
    assert all(each.is_online for each in manager.directories)
    assert numbers(log) == [*range(RECORDS)]


def test_nobody_writes_while_both_change_places(manager: LogManager, log: PartitionLog) -> None:
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    job = ReplicaSwap(manager, log, future, RECORDS, NOW)
    with pytest.raises(NotLeader):
        fill(log, RECORDS, RECORDS + 1)
    with pytest.raises(StorageError):
        manager.create(PARTITION, log.topic_id, NOW)
    job.run()
    assert log.read_resident(RECORDS - 1, 1, limit=RECORDS, min_one=True).length, "readers go on"
    assert job.switch()
    with pytest.raises(NotLeader):
        fill(log, RECORDS, RECORDS + 1)
    job.settle()
    job.done()
    fill(log, RECORDS, RECORDS + 1)


def test_a_log_that_is_deleted_in_that_moment_is_deleted(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    job = ReplicaSwap(manager, log, future, RECORDS, NOW)
    job.run()
    manager.delete([PARTITION], NOW)
    assert not job.switch()
    job.done()
    assert folders(disk) == folders(disk, ending="-delete")
    again = manager.create(PARTITION, log.topic_id, NOW, directory=manager.directories[1])
    assert again.end_offset == 0


def test_a_flush_that_was_under_way_counts_for_the_new_files_what_they_hold(
    manager: LogManager, log: PartitionLog
) -> None:
    flush = log.take_flush()
    assert flush is not None
    assert move(manager, log, manager.directories[1])
    fill(log, RECORDS, RECORDS + 2)
    flush.run()
    flush.done()
    assert log.recovery_point == RECORDS
    log.flush()
    assert log.recovery_point == RECORDS + 2

"""What a start makes of a move that was interrupted, and of a disk that fails in the middle of one."""

from __future__ import annotations

import errno
from uuid import UUID

import pytest

from headrace.core.errors import CorruptLog, StorageError
from headrace.log.manager import LogManager
from headrace.log.moving import marker
from headrace.log.moving.marker import Moved
from headrace.log.moving.swap import ReplicaSwap
from headrace.log.partition_log import PartitionLog
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW
from tests.unit.log.moving.world import PARTITION, begin, copy_all, fill, folders, new_log, open_manager, swap

RECORDS = 12


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


def restart(disk: SimulatedDisk) -> LogManager:
    disk.faults.clear()
    disk.kill()
    return open_manager(disk, lost_nothing=True)


def both_named(manager: LogManager, log: PartitionLog) -> ReplicaSwap:
    """The new folder has its name, and the old one has not lost it."""
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    job = ReplicaSwap(manager, log, future, RECORDS, NOW)
    job.run()
    return job


def test_a_future_replica_is_not_opened_and_its_move_is_remembered(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    copy_all(log, begin(manager, manager.directories[1]))
    assert len(folders(disk, ending="-future")["/b"]) == 1
    again = restart(disk)
    assert again.get(PARTITION).directory.path == "/a"
    assert again.interrupted_moves == {PARTITION: again.directories[1]}
    again.removals.remove(again.removals.take_due(NOW))
    assert folders(disk)["/b"] == []


def test_a_future_replica_whose_log_is_not_there_is_left_alone(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    """It may be all that is left of it."""
    copy_all(log, begin(manager, manager.directories[1]))
    disk.faults.append(Fault("list", "/a", errno.EIO))
    disk.kill()
    again = open_manager(disk)
    assert PARTITION not in again.logs
    again.removals.remove(again.removals.take_due(NOW))
    assert len(folders_of_b(disk)) == 1


def folders_of_b(disk: SimulatedDisk) -> list[str]:
    return [name for name in disk.list("/b") if name.startswith(str(PARTITION))]


def test_of_two_folders_the_later_one_is_opened_and_the_other_one_kept_aside(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    both_named(manager, log)
    again = restart(disk)
    assert not again.quarantined
    assert again.get(PARTITION).directory.path == "/b"
    assert again.get(PARTITION).end_offset == RECORDS
    assert folders(disk, ending="-stray") == {"/a": folders(disk)["/a"], "/b": []}
    assert marker.load(disk, f"/b/{PARTITION}") == Moved()
    assert not restart(disk).quarantined


@pytest.mark.parametrize("meanwhile", [("/a",), ("/a", "/c")], ids=["gone", "another in its place"])
def test_a_folder_that_was_opened_while_the_later_one_was_away_is_the_later_one(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog, meanwhile: tuple[str, ...]
) -> None:
    """The later one once won when its disk came back, and what was acknowledged meanwhile was gone."""
    both_named(manager, log)
    disk.kill()
    alone = open_manager(disk, meanwhile, lost_nothing=True).get(PARTITION)
    fill(alone, RECORDS, RECORDS + 3)
    for _ in range(2):
        again = restart(disk)
        assert not again.quarantined
        found = again.get(PARTITION)
        assert (found.directory.path, found.end_offset) == ("/a", RECORDS + 3)
    assert folders(disk, ending="-stray") == {"/a": [], "/b": folders(disk)["/b"]}


def test_the_later_folder_stays_the_later_one_while_the_older_one_is_away(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    both_named(manager, log)
    disk.kill()
    fill(open_manager(disk, ("/b",), lost_nothing=True).get(PARTITION), RECORDS, RECORDS + 3)
    again = restart(disk)
    assert not again.quarantined
    assert (again.get(PARTITION).directory.path, again.get(PARTITION).end_offset) == ("/b", RECORDS + 3)


def test_a_move_that_did_not_come_to_the_name_leaves_nothing_in_the_old_folder(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: ReplicaSwap) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReplicaSwap, "_give_name", killed)
    monkeypatch.setattr(ReplicaSwap, "_withdraw", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        both_named(manager, log)
    prepared = f"/a/{PARTITION}/{marker.PREPARED}"
    assert disk.exists(prepared)
    again = restart(disk)
    assert again.get(PARTITION).directory.path == "/a"
    assert not disk.exists(prepared)
    assert marker.load(disk, f"/a/{PARTITION}") == Moved()


def test_an_old_directory_that_cannot_prepare_for_it_keeps_the_replica(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    disk.faults.append(Fault("pwrite", f"/a/{PARTITION}/{marker.PREPARED}", errno.ENOSPC))
    with pytest.raises(StorageError):
        swap(manager, log, future)
    disk.faults.clear()
    assert manager.directories[0].is_online
    fill(log, RECORDS, RECORDS + 1)
    assert restart(disk).get(PARTITION).end_offset == RECORDS + 1


def test_two_folders_of_which_nobody_says_which_is_later_are_left_for_somebody_to_look_at(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    both_named(manager, log)
    disk.flip(f"/b/{PARTITION}/{marker.NAME}", 100)
    again = restart(disk)
    assert PARTITION in again.quarantined
    assert folders(disk) == {"/a": [str(PARTITION)], "/b": [str(PARTITION)]}


def test_a_replica_that_was_on_its_way_there_and_back_is_opened_where_it_is(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    there = ReplicaSwap(manager, log, future, RECORDS, NOW)
    there.run()
    assert there.switch()
    there.done()  # without the third step: the marker stays
    back = begin(manager, manager.directories[0])
    copy_all(log, back)
    ReplicaSwap(manager, log, back, RECORDS, NOW).run()
    again = restart(disk)
    assert not again.quarantined
    assert again.get(PARTITION).directory.path == "/a"


@pytest.mark.parametrize("operation", ["rename", "sync_dir"])
def test_an_old_directory_that_fails_in_the_middle_takes_the_partition_offline_and_loses_nothing(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog, operation: str
) -> None:
    job = both_named(manager, log)
    disk.faults.append(Fault(operation, "/a", errno.EIO))
    if operation == "rename":
        assert not job.switch()
    else:
        assert job.switch()
        with pytest.raises(StorageError):
            job.settle()
        manager.quarantine(PARTITION, CorruptLog("nobody knows whether the old folder is gone"))
    job.done()
    with pytest.raises(StorageError):
        manager.get(PARTITION)
    again = restart(disk)
    assert not again.quarantined
    assert (again.get(PARTITION).directory.path, again.get(PARTITION).end_offset) == ("/b", RECORDS)


@pytest.mark.parametrize("operation", ["sync_dir", "rename", "pwrite", "sync"])
def test_a_new_directory_that_fails_leaves_the_replica_where_it_is(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog, operation: str
) -> None:
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    fill(log, RECORDS, RECORDS + 2)
    disk.faults.append(Fault(operation, "/b", errno.EIO))
    with pytest.raises(StorageError):
        swap(manager, log, future)
    assert not manager.directories[1].is_online
    assert log.is_open
    fill(log, RECORDS + 2, RECORDS + 4)
    again = restart(disk)
    assert not again.quarantined
    assert (again.get(PARTITION).directory.path, again.get(PARTITION).end_offset) == ("/a", RECORDS + 4)


def test_a_new_directory_that_fails_once_both_have_the_name_never_wins(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where its name was taken back in memory alone, nor where it was not."""
    future = begin(manager, manager.directories[1])
    copy_all(log, future)
    job = ReplicaSwap(manager, log, future, RECORDS, NOW)

    def fail(_: ReplicaSwap) -> None:
        disk.faults.extend((Fault("rename", "/b", errno.EIO), Fault("sync_dir", "/b", errno.EIO)))
        raise CorruptLog("no copy")

    monkeypatch.setattr(ReplicaSwap, "_open", fail)
    with pytest.raises(CorruptLog):
        job.run()
    job.done()
    fill(log, RECORDS, RECORDS + 3)
    again = restart(disk)
    assert not again.quarantined
    assert (again.get(PARTITION).directory.path, again.get(PARTITION).end_offset) == ("/a", RECORDS + 3)


def test_a_marker_comes_back_as_it_was_written_and_a_damaged_one_says_nothing() -> None:
    moved = Moved().onward(source := _uuid(1), _uuid(2)).onward(_uuid(2), _uuid(3))
    assert moved == Moved(2, frozenset({source, _uuid(2)}))
    content = marker.encode(moved)
    assert marker.decode(content) == moved
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert marker.decode(bytes(damaged)) == Moved()
    assert moved.onward(_uuid(3), source).sources == {_uuid(2), _uuid(3)}


def _uuid(number: int) -> UUID:
    return UUID(int=number)


def test_what_a_directory_that_fails_at_the_start_holds_is_not_called_missing(
    disk: SimulatedDisk, manager: LogManager, log: PartitionLog
) -> None:
    """It has no room for an index that is to be built anew. The folder is there."""
    manager.take_checkpoint({PARTITION: RECORDS})[0].run()
    disk.kill()
    for name in disk.list(f"/a/{PARTITION}"):
        if name.endswith("index"):
            disk.lose(f"/a/{PARTITION}/{name}")
    disk.faults.append(Fault("pwrite", f"/a/{PARTITION}", errno.ENOSPC))
    again = open_manager(disk, lost_nothing=True)
    assert not again.directories[0].is_online
    assert again.quarantined == {}
    again.release()
    assert restart(disk).get(PARTITION).end_offset == RECORDS

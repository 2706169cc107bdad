"""What a log directory that fails is taken to have lost."""

from __future__ import annotations

import errno

import pytest

from headrace.core.errors import DiskFull, StorageError
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.log.wholeness import Claims
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import (
    NOW,
    PARTITION,
    append,
    new_directory,
    open_at,
    topic_config,
    whole_batches,
)

CONFIG = topic_config(index_interval_bytes=1)


def written(disk: SimulatedDisk) -> PartitionLog:
    log = open_at(disk, "/data", config=CONFIG)
    append(log, b"a")
    append(log, b"b")
    return log


def open_again(disk: SimulatedDisk) -> LogDirectory:
    """The directory, after a start that failed."""
    directory = new_directory(disk, "/data")
    path = f"/data/{PARTITION}"
    with pytest.raises(StorageError, match="is offline"):
        open_log(directory, path, PARTITION, CONFIG, Claims(), clean=False, now_ms=NOW)
    return directory


def fail_syncs(disk: SimulatedDisk, log: PartitionLog, number: int) -> None:
    disk.faults.append(Fault("sync", f"{log.path}/00000000000000000000.log", number))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("doing", ["flush", "truncate", "close"])
def test_a_sync_that_finds_the_disk_full_may_have_lost_something(doing: str, number: int) -> None:
    """A write that finds no room was refused. A sync that finds none has given up what was written before."""
    disk = SimulatedDisk()
    log = written(disk)
    fail_syncs(disk, log, number)
    with pytest.raises(StorageError, match="is offline"):
        log.flush() if doing == "flush" else log.truncate_to(1) if doing == "truncate" else log.close()
    assert log.directory.may_have_lost


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_sync_that_finds_the_disk_full_at_the_start_may_have_lost_something(number: int) -> None:
    disk = SimulatedDisk()
    fail_syncs(disk, written(disk), number)
    assert open_again(disk).may_have_lost


def test_a_folder_whose_names_cannot_be_synced_may_have_lost_something() -> None:
    disk = SimulatedDisk()
    log = written(disk)
    disk.faults.append(Fault("sync_dir", log.path, errno.ENOSPC))
    with pytest.raises(StorageError, match="is offline"):
        log.flush()
    assert log.directory.may_have_lost


def test_a_full_disk_has_lost_nothing() -> None:
    disk = SimulatedDisk()
    log = written(disk)
    disk.free = 0
    with pytest.raises(StorageError, match="free space on it"):
        append(log, b"c")
    assert not log.directory.may_have_lost


def test_a_disk_that_is_full_at_the_start_has_lost_nothing() -> None:
    disk = SimulatedDisk()
    written(disk)
    disk.free = 0
    assert not open_again(disk).may_have_lost


def test_an_index_that_finds_no_room_waits_for_it() -> None:
    """The batches are written by then: they cannot be refused, and an index can be made again."""
    disk = SimulatedDisk()
    log = open_at(disk, "/data", config=CONFIG)
    disk.faults.append(Fault("open", f"{log.path}/00000000000000000000.index", errno.ENOSPC))
    disk.faults.append(Fault("open", f"{log.path}/00000000000000000000.timeindex", errno.ENOSPC))
    for number in range(3000):
        append(log, b"%d" % number, timestamp=NOW + number)
    assert log.directory.is_online
    disk.faults.clear()
    append(log, b"more", timestamp=NOW + 3000)
    log.close()
    again = open_at(disk, "/data", clean=True, recovery_point=3001, config=CONFIG)
    for offset in range(0, 3000, 100):
        found = again.segments[0].locate(offset)
        assert found is not None
        assert found.base_offset == offset


@pytest.mark.parametrize("follower", [False, True])
def test_an_epoch_that_finds_no_room_is_refused_with_its_batch(follower: bool) -> None:
    """The batch was once in the segment by then, and not in the log: the next one got the same offset."""
    disk = SimulatedDisk()
    log = written(disk)
    disk.faults.append(Fault("open", f"{log.path}/leader-epoch-checkpoint", errno.ENOSPC))
    other = open_at(SimulatedDisk(), "/data", config=CONFIG)
    for epoch in (0, 0, 1, 1):
        append(other, b"x", leader_epoch=epoch)
    found = other.read(2, 10_000, limit=4, min_one=True)
    fetched = found.file.pread(found.length, found.position)

    def extend() -> None:
        if follower:
            log.append_as_follower(fetched)
        else:
            append(log, b"c", leader_epoch=1)

    for _ in range(2):
        with pytest.raises(DiskFull):
            extend()
        assert (log.end_offset, log.latest_epoch, log.directory.is_online) == (2, 0, True)
    disk.faults.clear()
    log.directory.is_full = False
    extend()
    assert log.latest_epoch == 1
    assert log.epochs.entries == [(0, 0), (1, 2)]
    whole = log.read(0, 10_000, limit=log.end_offset, min_one=True)
    batches = whole_batches(whole.file.pread(whole.length, whole.position))
    assert [header.base_offset for header, _ in batches] == list(range(log.end_offset))

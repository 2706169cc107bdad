"""What a log directory that fails is taken to have lost."""

from __future__ import annotations

import errno

import pytest

from headrace.core.errors import StorageError
from headrace.log.directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.log.wholeness import Claims
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW, PARTITION, append, new_directory, open_at, topic_config

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

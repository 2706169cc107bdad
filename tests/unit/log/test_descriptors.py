"""A process that may open no more files: its logs go on, and no disk is blamed."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.core.errors import TooManyOpenFiles
from headrace.log.descriptors import RESERVE, Reserve
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.log.read_ahead import ReadAhead
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW, append, open_at, topic_config

CONFIG = topic_config(index_interval_bytes=1, segment_bytes=1000)
LACK = [errno.EMFILE, errno.ENFILE]


@contextmanager
def nothing_left() -> Iterator[list[int]]:
    """All descriptors are taken; gives those that were taken for it, to be closed one by one."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.dup(0)
    taken = [probe]
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + 20, limits[1]))
    try:
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        yield taken
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for each in taken:
            os.close(each)


@pytest.fixture
def reserve() -> Iterator[Reserve]:
    RESERVE.keep(2)
    yield RESERVE
    RESERVE.keep(0)


def test_the_logs_open_what_they_need_when_peers_hold_all_descriptors(
    reserve: Reserve, tmp_path: Path
) -> None:
    disk, path = OsDisk(), str(tmp_path / "file")
    with nothing_left() as taken:
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(0)
        for _ in range(5):
            file = disk.open(path, create=True)
            assert reserve.is_in_use()
            file.close()
            disk.sync_dir(str(tmp_path))
            assert disk.list(str(tmp_path)) == ["file"]
        kept = [disk.open(path), disk.open(path)]
        with pytest.raises(OSError, match="Too many open files"):
            disk.open(path)
        for file in kept:
            file.close()
        os.close(taken.pop())
        disk.open(path).close()
    disk.open(path).close()
    assert not reserve.is_in_use(), "it is filled again"


def written(disk: SimulatedDisk) -> PartitionLog:
    """Several segments, none of them open."""
    log = open_at(disk, "/data", config=CONFIG)
    while len(log.segments) < 3:
        append(log, b"x" * 100)
    log.flush()
    for segment in log.segments:
        segment.release()
    return log


def read(log: PartitionLog) -> object:
    return log.read(0, 100, limit=log.end_offset, min_one=True)


def look_up(log: PartitionLog) -> object:
    return log.offset_for_timestamp(NOW, log.end_offset)


def write(log: PartitionLog) -> object:
    return append(log, b"y")


def write_to_next_segment(log: PartitionLog) -> object:
    return [append(log, b"y" * 100) for _ in range(10)]


def begin_epoch(log: PartitionLog) -> object:
    log.begin_epoch(7)
    return None


@pytest.mark.parametrize("number", LACK)
@pytest.mark.parametrize("doing", [read, look_up, write, write_to_next_segment, begin_epoch])
def test_a_lack_of_descriptors_is_no_fault_of_the_directory(
    doing: Callable[[PartitionLog], object], number: int
) -> None:
    disk = SimulatedDisk()
    log = written(disk)
    end = log.end_offset
    disk.faults.append(Fault("open", "/data", number))
    with pytest.raises(TooManyOpenFiles):
        doing(log)
    assert log.directory.is_online
    assert not log.directory.may_have_lost
    assert log.latest_epoch < 7
    disk.faults.clear()
    assert log.end_offset == end
    doing(log)
    log.close()
    assert log.directory.is_online


def test_a_flush_waits_for_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    log = written(disk)
    while len(log.segments) < 5:
        append(log, b"x" * 100)
    job = log.take_flush()
    assert job is not None
    disk.faults.append(Fault("open", "/data", errno.EMFILE))
    refused = []
    meet = disk.meet_faults

    def meet_twice(operation: str, path: str) -> None:
        if operation == "open":
            refused.append(path)
            if len(refused) > 2:
                disk.faults.clear()
        meet(operation, path)

    monkeypatch.setattr(disk, "meet_faults", meet_twice)
    job.run()
    job.done()
    assert len(refused) > 2
    assert log.recovery_point == log.end_offset
    assert log.directory.is_online


def test_a_flush_that_finds_no_descriptor_is_taken_again() -> None:
    disk = SimulatedDisk()
    log = written(disk)
    log.begin_epoch(7)
    log.mark_unsynced(NOW)
    for segment in log.segments:
        segment.release()
    disk.faults.append(Fault("open", "/data", errno.EMFILE))
    with pytest.raises(TooManyOpenFiles):
        log.take_flush()
    assert log.epochs.unsynced, "or nobody would sync it"
    disk.faults.clear()
    log.flush()
    assert not log.epochs.unsynced


def test_whoever_reads_for_a_peer_leaves_the_reserve_alone(reserve: Reserve, tmp_path: Path) -> None:
    log = written(SimulatedDisk())
    job = ReadAhead(log, log.segments[0], 0, 100)
    with nothing_left():
        file = OsDisk().open(str(tmp_path / "file"), create=True)
        assert reserve.is_in_use()
        with pytest.raises(OSError, match="Too many open files"):
            job.run()
        file.close()
        job.run()  # though nobody has opened anything since, which would have filled it

"""The flusher: who waits for a sync is told after it, once, and shares it with those who came meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from headrace.broker.storage.flusher import Flusher
from headrace.core.errors import HeadraceError, NotLeader, StorageError
from headrace.log.os_disk import OsDisk, OsFile
from headrace.log.partition_log import PartitionLog
from headrace.metrics.histogram import LatencyHistogram
from tests.unit.log.material import append, open_at


class HeldFile(OsFile):
    """Its sync waits for leave, and fails where the test says so."""

    leave = Event()
    syncs = 0
    failure: OSError | None = None

    def sync(self) -> None:
        assert HeldFile.leave.wait(10)
        HeldFile.syncs += 1
        if HeldFile.failure is not None:
            raise HeldFile.failure
        super().sync()


class HeldDisk(OsDisk):
    def open(self, path: str, *, create: bool = False) -> OsFile:
        file = super().open(path, create=create)
        if not path.endswith(".log"):
            return file
        held = HeldFile(file._descriptor)
        file._descriptor = -1
        return held


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    HeldFile.leave = Event()
    HeldFile.leave.set()
    HeldFile.syncs = 0
    HeldFile.failure = None
    opened = open_at(HeldDisk(), str(tmp_path))
    HeldFile.leave.clear()
    HeldFile.syncs = 0
    return opened


@pytest.fixture
async def flusher() -> AsyncIterator[Flusher]:
    threads = ThreadPoolExecutor(1)
    yield Flusher(asyncio.get_running_loop(), threads, LatencyHistogram())
    HeldFile.leave.set()
    threads.shutdown()


async def test_nobody_is_told_before_the_sync(log: PartitionLog, flusher: Flusher) -> None:
    told: list[HeadraceError | None] = []
    append(log, b"a")
    flusher.flush(log, told.append)
    await asyncio.sleep(0.05)
    assert told == []
    assert log.recovery_point == 0
    HeldFile.leave.set()
    await flusher.drain()
    await asyncio.sleep(0)
    assert told == [None]
    assert log.recovery_point == 1


async def test_those_who_come_during_a_sync_share_the_next(log: PartitionLog, flusher: Flusher) -> None:
    told: list[int] = []
    append(log, b"a")
    flusher.flush(log, lambda _: told.append(0))
    for number in range(1, 6):
        append(log, b"more")
        flusher.flush(log, lambda _, number=number: told.append(number))  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
    HeldFile.leave.set()
    for _ in range(100):
        await flusher.drain()
        await asyncio.sleep(0.01)
        if len(told) == 6:
            break
    assert told == [0, 1, 2, 3, 4, 5]
    assert HeldFile.syncs == 2
    assert log.recovery_point == 6


async def test_a_failed_sync_is_told_to_all_and_never_tried_again(
    log: PartitionLog, flusher: Flusher
) -> None:
    told: list[HeadraceError | None] = []
    append(log, b"a")
    flusher.flush(log, told.append)
    append(log, b"b")
    flusher.flush(log, told.append)
    HeldFile.failure = OSError(5, "Input/output error")
    HeldFile.leave.set()
    await flusher.drain()
    await asyncio.sleep(0)
    assert len(told) == 2
    assert all(isinstance(error, StorageError) for error in told)
    assert log.recovery_point == 0
    assert not log.directory.is_online
    assert HeldFile.syncs == 1


async def test_who_waits_for_what_was_cut_off_meanwhile_is_told_and_what_is_left_is_synced(
    log: PartitionLog, flusher: Flusher
) -> None:
    """Otherwise the flusher would sync again and again, until the log is as long as it was."""
    told: list[HeadraceError | None] = []
    append(log, b"a")
    append(log, b"b")
    flusher.flush(log, told.append)
    append(log, b"c")
    flusher.flush(log, told.append)
    HeldFile.leave.set()  # the sync itself has begun before the cut, and comes back after it
    log.truncate_to(1)
    async with asyncio.timeout(15):
        while len(told) < 2 or log.synced_offset < 1:
            await asyncio.sleep(0.01)
    syncs = HeldFile.syncs
    await asyncio.sleep(0.05)
    at_rest = HeldFile.syncs == syncs
    HeldFile.failure = OSError(5, "Input/output error")  # ends the syncs, if they go on
    await asyncio.sleep(0.05)
    assert at_rest
    assert [type(error) for error in told] == [NotLeader, NotLeader]
    assert (log.end_offset, log.synced_offset) == (1, 1)


async def test_a_sync_that_began_before_a_cut_says_nothing_of_what_came_after_it(
    log: PartitionLog, flusher: Flusher
) -> None:
    synced: list[int] = []
    for value in (b"a", b"b", b"c"):
        append(log, value)
    flusher.flush(log)
    held, HeldFile.leave = HeldFile.leave, Event()
    HeldFile.leave.set()
    log.truncate_to(1)
    HeldFile.leave = Event()
    append(log, b"d")
    flusher.flush(log, lambda _: synced.append(log.synced_offset))
    held.set()  # only the sync that was begun first
    await asyncio.sleep(0.05)
    assert synced == []
    HeldFile.leave.set()
    for _ in range(100):
        if synced:
            break
        await asyncio.sleep(0.01)
    assert synced == [2]

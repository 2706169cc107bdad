"""Thousands of followers that cut their logs at once, on a slow disk: the loop goes on."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.replicas.truncations import AT_ONCE, Truncations
from headrace.broker.storage.flusher import Flusher
from headrace.core.ids import TopicPartition
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.log.os_disk import OsDisk, OsFile
from headrace.metrics.histogram import LatencyHistogram
from headrace.metrics.registry import TopicMetrics
from headrace.replication.following import FetchOutcome
from headrace.replication.partition import Partition
from headrace.replication.replica import Role
from tests.unit.log.material import NOW, topic_config
from tests.unit.replication.replicas import answer, append, row

PARTITIONS = 3000
SYNC_SECONDS = 0.02
"""What each sync of the slow disk takes. In threads it is not slept: only the loop must not."""
PARTITIONS_PER_TURN = 50
"""As many as a fetcher takes out of an answer before others have their turn."""


class SlowFile(OsFile):
    disk: SlowDisk

    def sync(self) -> None:
        self.disk.wait()


class SlowDisk(OsDisk):
    """Says who waited for it, and for how long. It syncs nothing: no power is lost here."""

    __slots__ = ("checkpoints", "loop_thread", "waited_on_loop")

    def __init__(self) -> None:
        self.loop_thread = threading.get_ident()
        self.waited_on_loop = 0.0
        self.checkpoints = 0

    def open(self, path: str, *, create: bool = False) -> Any:
        if path.endswith("recovery-point-offset-checkpoint.tmp"):
            self.checkpoints += 1
        plain = super().open(path, create=create)
        file = SlowFile(plain.fileno())
        plain._descriptor = -1
        file.disk = self
        return file

    def sync_dir(self, path: str) -> None:
        self.wait()

    def wait(self) -> None:
        if threading.get_ident() == self.loop_thread:
            self.waited_on_loop += SYNC_SECONDS


def truncations_in(threads: ThreadPoolExecutor, followed: list[Any]) -> Truncations:
    """`followed`: where the partitions go that are followed again."""
    loop = asyncio.get_running_loop()
    runtime: Any = SimpleNamespace(
        loop=loop,
        log=SimpleNamespace(warning=pytest.fail),
        clock=SimpleNamespace(monotonic=time.monotonic, wall_ms=lambda: NOW),
    )
    flusher = Flusher(loop, threads, LatencyHistogram())
    return Truncations(runtime, flusher, followed.append, unfollowed, damaged, threads)


def unfollowed(partition: object) -> None:
    pytest.fail(f"nobody follows {partition} any more")


def damaged(partition: object, offset: int) -> None:
    pytest.fail(f"{partition} is damaged at {offset}")


@pytest.fixture
def disk() -> SlowDisk:
    return SlowDisk()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[str]:
    """In memory, where there is such a place: thousands of files are made."""
    if not os.path.isdir("/dev/shm"):
        yield str(tmp_path)
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        yield made


@pytest.fixture
def logs(disk: SlowDisk, directory: str) -> Iterator[LogManager]:
    config = topic_config()
    manager = LogManager(
        disk,
        [directory],
        DirectoryIdentity("cluster", 2),
        lambda _topic: config,
        new_uuid=lambda: UUID(int=1),
        max_open_segments=100,
    )
    manager.open_all(NOW)
    yield manager
    manager.release()


def diverged(logs: LogManager, number: int) -> Partition:
    """It has led alone, and all is synced. The leader that it follows now has only the first record."""
    name = TopicPartition("t", number)
    log = logs.create(name, UUID(int=7), NOW)
    partition = Partition(name, UUID(int=7), log, TopicMetrics())
    for epoch, record in ((1, b"a"), (3, b"b")):
        partition.assign(row(2, epoch, (2,), replicas=(2,)), 2, 0.0)
        append(partition, record)
    log.flush()
    partition.assign(row(1, 5), 2, 0.0)
    return partition


async def test_three_thousand_logs_are_truncated_while_the_loop_goes_on(
    logs: LogManager, disk: SlowDisk
) -> None:
    partitions = [diverged(logs, number) for number in range(PARTITIONS)]
    for job in logs.take_checkpoint():
        job.run()
    disk.checkpoints = 0
    disk.waited_on_loop = 0.0
    longest_turn = 0.0
    with ThreadPoolExecutor(AT_ONCE + 1) as threads:
        followed: list[Partition] = []
        truncations = truncations_in(threads, followed)
        for first in range(0, PARTITIONS, PARTITIONS_PER_TURN):
            for partition in partitions[first : first + PARTITIONS_PER_TURN]:
                sent = partition.fetch_position()
                assert sent is not None
                assert partition.on_fetched(sent, answer(diverging=(1, 1)), NOW) == FetchOutcome.TRUNCATING
                truncations.begin(partition)
            await asyncio.sleep(0)
        while len(followed) < PARTITIONS:
            began = time.thread_time()
            await asyncio.sleep(0.001)
            longest_turn = max(longest_turn, time.thread_time() - began)
        await truncations.stop()
    assert all(partition.role == Role.FOLLOWER for partition in partitions)
    assert {partition.log.end_offset for partition in partitions} == {1}
    assert all(partition.fetch_position() is not None for partition in partitions)
    assert disk.waited_on_loop == 0.0
    assert longest_turn < 0.05
    assert disk.checkpoints <= PARTITIONS // PARTITIONS_PER_TURN, "those that come together share a write"


async def test_a_stop_leaves_those_alone_that_were_not_begun(logs: LogManager, disk: SlowDisk) -> None:
    partition = diverged(logs, 0)
    sent = partition.fetch_position()
    assert sent is not None
    partition.on_fetched(sent, answer(diverging=(1, 1)), NOW)
    with ThreadPoolExecutor(1) as threads:
        truncations = truncations_in(threads, [])
        truncations.begin(partition)
        await truncations.stop()
        await asyncio.sleep(0)
    assert partition.log.end_offset == 2
    assert partition.log.is_open


async def test_a_log_that_cannot_be_cut_for_its_damage_is_looked_at_and_not_cut_again_and_again(
    logs: LogManager, directory: str
) -> None:
    """Its leader would say at once where to cut it, for ever: two hundred times a second, and to no end."""
    partition = diverged(logs, 0)
    sent = partition.fetch_position()
    assert sent is not None
    partition.on_fetched(sent, answer(diverging=(1, 1)), NOW)
    with open(partition.log.segments[0].path(".log"), "r+b") as file:
        file.write(bytes(partition.log.segments[0].size))
    looked_at: list[tuple[object, int]] = []
    later: list[Any] = []
    followed: list[Any] = []
    loop = asyncio.get_running_loop()
    runtime: Any = SimpleNamespace(
        loop=loop,
        log=SimpleNamespace(warning=lambda *_, **__: None),
        clock=SimpleNamespace(monotonic=time.monotonic, wall_ms=lambda: NOW),
        timers=SimpleNamespace(after=lambda _seconds, _name, call: later.append(call)),
    )
    with ThreadPoolExecutor(1) as threads:
        truncations = Truncations(
            runtime,
            Flusher(loop, threads, LatencyHistogram()),
            followed.append,
            unfollowed,
            lambda partition, offset: looked_at.append((partition, offset)),
            threads,
        )
        truncations.begin(partition)
        while not later:
            await asyncio.sleep(0.001)
        assert looked_at == [(partition, 0)]
        assert not followed
        later[0]()
        assert followed == [partition]
        await truncations.stop()

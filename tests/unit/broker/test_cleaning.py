"""The broker's side of compaction: which log, when, and what becomes of a pass whose log has changed."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from headrace.broker.storage.cleaner_pool import InPlace, Steps, WorkerLost
from headrace.broker.storage.cleaning import Cleaning
from headrace.config.broker import BrokerConfig
from headrace.core.ids import TopicPartition
from headrace.log import files
from headrace.log.cleaner.job import CleaningJob
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog
from headrace.metrics.registry import BrokerMetrics
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.cleaner.material import compacted, put
from tests.unit.log.material import NOW, read_records


class Logger:
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Any:
        return lambda event, **_fields: self.events.append((level, event))


class Host:
    """As much of a broker as the cleaner needs, over a simulated disk."""

    def __init__(self, **settings: str) -> None:
        self.disk = SimulatedDisk()
        self.configs: dict[str, Any] = {}
        self.logs = LogManager(
            self.disk,
            ["/data"],
            DirectoryIdentity("c", 1),
            lambda topic: self.configs.get(topic, compacted()),
            new_uuid=lambda: UUID(int=9),
            threads_per_directory=1,
        )
        self.logs.open_all(NOW)
        self.metrics = BrokerMetrics()
        self.log = Logger()
        self.partitions: list[Any] = []
        self.now = 100.0
        names = {name.replace("_", "."): value for name, value in settings.items()}
        runtime: Any = SimpleNamespace(
            disk=self.disk,
            metrics=self.metrics,
            log=self.log,
            clock=SimpleNamespace(wall_ms=lambda: NOW, monotonic=lambda: self.now),
            config=BrokerConfig.parse({"broker.id": "1", "log.dirs": "/nowhere", **names}),
            environment=SimpleNamespace(processes=False),
            offload=self._offload,
        )
        maintenance: Any = SimpleNamespace(checkpoint=self._checkpoint)
        self.cleaning = Cleaning(runtime, self.logs, cast(Any, self.partitions), maintenance)

    async def _checkpoint(self) -> None:
        for swap in self.logs.take_checkpoint({}):
            swap.run()

    async def _offload(self, call: Any) -> None:
        call()

    def host(self, topic: str, **config: Any) -> PartitionLog:
        self.configs[topic] = compacted(**config)
        log = self.logs.create(TopicPartition(topic, 0), UUID(int=1), NOW)
        self.partitions.append(
            SimpleNamespace(
                topic_partition=log.topic_partition,
                log=log,
                is_offline=False,
                last_stable_offset=1 << 40,
            )
        )
        return log

    def clean_until(self, log: PartitionLog) -> int:
        return self.logs.checkpoints_of(log).clean_offsets.get(log.topic_partition, 0)

    async def rounds(self, count: int = 30) -> None:
        if self.cleaning._task is None:
            self.cleaning.start()
        for _ in range(count):
            await asyncio.sleep(0)


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made = Host()
    yield made
    await made.cleaning.stop()


def fill(log: PartitionLog, records: int, keys: int) -> None:
    for number in range(records):
        put(log, (b"k%d" % (number % keys), b"%d" % number))
    log.roll(NOW)
    log.flush()


async def test_a_dirty_log_is_cleaned_and_the_checkpoint_says_so(host: Host) -> None:
    log = host.host("t")
    fill(log, 30, 3)
    await host.rounds()
    assert [record.offset for record in read_records(log)] == [27, 28, 29]
    assert host.clean_until(log) == 30
    assert host.disk.exists("/data/cleaner-offset-checkpoint")
    assert host.metrics.cleaner.passes == 1
    assert ("info", "log cleaned") in host.log.events


async def test_the_dirtiest_log_comes_first_and_others_must_be_worth_it(host: Host) -> None:
    little, much, never = (
        host.host("little"),
        host.host("much"),
        host.host("never", min_cleanable_dirty_ratio=1),
    )
    for log in (little, much, never):
        fill(log, 30, 3)
    fill(much, 30, 3)
    await host.rounds(60)
    order = [event for event in host.log.events if event[1] == "log cleaned"]
    assert len(order) == 2
    assert host.clean_until(never) == 0
    fill(little, 1, 1)
    fill(little, 30, 30)
    host.now += 60
    await host.rounds(30)
    assert host.clean_until(little) > 0


async def test_a_log_that_is_only_deleted_is_left_alone(host: Host) -> None:
    log = host.host("t", cleanup_policy=frozenset({"delete"}))
    fill(log, 30, 3)
    await host.rounds()
    assert host.clean_until(log) == 0
    assert len(read_records(log)) == 30


async def test_an_overdue_log_is_cleaned_though_it_is_clean_enough(host: Host) -> None:
    log = host.host("t", min_cleanable_dirty_ratio=1, max_compaction_lag_ms=1000)
    for number in range(10):
        put(log, (b"k", b"%d" % number), timestamp=NOW - 5000)
    log.roll(NOW)
    log.flush()
    await host.rounds()
    assert host.clean_until(log) == 10


async def test_damage_makes_a_partition_uncleanable_until_a_restart(host: Host) -> None:
    log = host.host("t")
    fill(log, 30, 3)
    host.disk.flip(log.segments[0].path(files.LOG), 70 * 8)
    await host.rounds()
    assert list(host.cleaning.uncleanable) == [log]
    assert host.metrics.cleaner.read_uncleanable() == 1
    host.now += 1000
    await host.rounds()
    assert host.metrics.cleaner.failed_passes == 1


class Scripted(InPlace):
    """Does something to the log before a group is handed over."""

    def __init__(self, disk: SimulatedDisk, act: Any) -> None:
        super().__init__(disk)
        self._act = act

    async def run(self, job: CleaningJob) -> Steps:
        async for step in super().run(job):
            act, self._act = self._act, lambda: None
            act()
            yield step


@pytest.mark.parametrize("act", ["truncate", "close", "remove"])
async def test_what_was_made_of_a_log_that_changed_is_thrown_away(host: Host, act: str) -> None:
    log = host.host("t")
    fill(log, 30, 3)

    def change() -> None:
        if act == "truncate":
            log.truncate_to(20)
        elif act == "close":
            log.abandon()
        else:
            log.delete_records_before(30)
            log.enforce_retention(NOW, 30)

    host.cleaning._workers = Scripted(host.disk, change)
    await host.rounds(8)
    assert host.clean_until(log) == 0
    assert ("info", "log changed during cleaning") in host.log.events
    if act == "truncate":
        assert [record.offset for record in read_records(log)] == list(range(20))
    if act != "close":
        assert not [name for name in host.disk.list(log.path) if name.endswith(files.CLEANED)]


async def test_a_lost_worker_is_tried_again_later(host: Host) -> None:
    log = host.host("t")
    fill(log, 30, 3)

    def lose() -> None:
        raise WorkerLost("gone")

    host.cleaning._workers = Scripted(host.disk, lose)
    await host.rounds()
    assert host.clean_until(log) == 0
    assert not host.cleaning.uncleanable
    assert not [name for name in host.disk.list(log.path) if name.endswith(files.CLEANED)]
    host.now += 16
    host.cleaning._changed.set()
    await host.rounds()
    assert host.clean_until(log) == 30


@pytest.mark.parametrize(("number", "offline"), [(errno.EIO, True), (errno.ENOSPC, False)])
async def test_a_broken_disk_is_offline_and_a_full_one_is_waited_for(
    host: Host, number: int, offline: bool
) -> None:
    log = host.host("t")
    fill(log, 30, 3)

    def fail() -> None:
        raise OSError(number, "it fails")

    host.cleaning._workers = Scripted(host.disk, fail)
    await host.rounds()
    assert log.directory.is_online != offline
    assert not host.cleaning.uncleanable


async def test_an_unexpected_mistake_does_not_end_the_cleaner(host: Host) -> None:
    bad, good = host.host("bad"), host.host("good")
    fill(bad, 30, 3)

    def stumble() -> None:
        raise RuntimeError("a mistake")

    host.cleaning._workers = Scripted(host.disk, stumble)
    await host.rounds()
    assert list(host.cleaning.uncleanable) == [bad]
    fill(good, 30, 3)
    host.cleaning._changed.set()
    await host.rounds()
    assert host.clean_until(good) == 30


async def test_the_files_of_old_segments_are_removed_later_and_away_from_the_loop(host: Host) -> None:
    log = host.host("t", file_delete_delay_ms=500)
    fill(log, 30, 3)
    await host.rounds()
    assert host.logs.take_expired_files(NOW + 499) == []
    due = host.logs.take_expired_files(NOW + 500)
    assert due
    assert all(path.endswith(files.DELETED) and host.disk.exists(path) for _, path in due)
    host.logs.removals.remove_files([*due, due[0]])
    assert not [name for name in host.disk.list(log.path) if name.endswith(files.DELETED)]
    assert host.logs.take_expired_files(NOW + 500) == []

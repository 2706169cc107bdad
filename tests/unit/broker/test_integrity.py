"""What is done about data that cannot be read any more."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.integrity import Integrity
from headrace.network.page_cache import PageCache
from headrace.replication.partition import Partition
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.replication.replicas import append, new_partition, row


class Broker:
    def __init__(self, partition: Partition) -> None:
        self.loop = asyncio.get_running_loop()
        self.partitions = [partition]
        self.log = SimpleNamespace(warning=self._note, error=self._note)
        self.notes: list[str] = []

    def _note(self, text: str, **_: object) -> None:
        self.notes.append(text)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def partition(disk: SimulatedDisk) -> Partition:
    partition = new_partition(disk)
    partition.assign(row(1, 1, (1,)), 1, 0.0)
    append(partition, b"a")
    return partition


@pytest.fixture
async def threads() -> AsyncIterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def break_disk(disk: SimulatedDisk, partition: Partition) -> None:
    disk.faults.append(Fault("pread", partition.log.path, errno.EIO))


async def until_offline(partition: Partition) -> None:
    async with asyncio.timeout(15):
        while partition.log.directory.is_online:
            await asyncio.sleep(0.001)


async def test_a_range_that_cannot_be_read_takes_its_directory_offline(
    disk: SimulatedDisk, partition: Partition
) -> None:
    """Otherwise a leader would go on leading with records that it can give to nobody."""
    broker: Any = Broker(partition)
    integrity = Integrity(broker)
    break_disk(disk, partition)
    integrity.doubt(partition, 0)
    await until_offline(partition)


async def test_a_cold_range_that_cannot_be_read_is_looked_at_and_is_not_sent(
    disk: SimulatedDisk, partition: Partition, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    broker: Any = Broker(partition)
    page_cache = PageCache(broker.loop, threads)
    Integrity(broker).watch(SimpleNamespace(page_cache=page_cache))
    part = partition.log.read(0, 1 << 20, limit=1, min_one=True)
    monkeypatch.setattr(type(part.file), "fileno", unreadable)
    break_disk(disk, partition)
    sent: asyncio.Future[bool] = broker.loop.create_future()
    page_cache.warm(part, sent.set_result)
    async with asyncio.timeout(15):
        assert not await sent, "it is not sent"
    await until_offline(partition)

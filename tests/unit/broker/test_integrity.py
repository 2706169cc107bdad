"""What is done about data that cannot be read any more."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.storage import integrity as integrity_module
from headrace.broker.storage.integrity import Integrity
from headrace.broker.storage.mending import Mending
from headrace.broker.storage.other_copies import Copies, OtherCopies
from headrace.broker.storage.quarantine import Quarantine
from headrace.core.timers import TimerQueue
from headrace.log.read_state import ColdRead, Damage
from headrace.log.segment import Segment
from headrace.network.page_cache import PageCache
from headrace.replication.partition import Partition
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW
from tests.unit.replication.replicas import append, new_partition, row


def integrity_of(partition: Partition) -> Integrity:
    """Of a broker that hosts nothing else. It asks no other, and gives nothing up."""
    runtime = new_runtime()
    partitions: Any = [partition]
    unused: Any = None
    return Integrity(runtime, unused, partitions, quarantine_of(partition, runtime))


def quarantine_of(partition: Partition, runtime: Any) -> Quarantine:
    partitions: Any = [partition]
    unused: Any = None
    return Quarantine(runtime, unused, unused, partitions, unused, unused)


def new_runtime() -> Any:
    loop = asyncio.get_running_loop()
    return SimpleNamespace(
        loop=loop,
        timers=TimerQueue(loop),
        is_standalone=False,
        metrics=SimpleNamespace(scrub=SimpleNamespace(damage_found=0)),
        clock=SimpleNamespace(wall_ms=lambda: NOW),
        log=SimpleNamespace(warning=lambda *_, **__: None, error=lambda *_, **__: None),
    )


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
    integrity = integrity_of(partition)
    break_disk(disk, partition)
    integrity.doubt(partition, 0)
    await until_offline(partition)


async def test_a_cold_range_that_cannot_be_read_is_looked_at_and_is_not_sent(
    disk: SimulatedDisk, partition: Partition, threads: ThreadPoolExecutor
) -> None:
    loop = asyncio.get_running_loop()
    page_cache = PageCache(loop, threads)
    integrity_of(partition).watch(page_cache)
    part = partition.log.read(0, 1 << 20, limit=1, min_one=True)
    break_disk(disk, partition)
    sent: asyncio.Future[bool] = loop.create_future()
    page_cache.warm(part, sent.set_result)
    async with asyncio.timeout(15):
        assert not await sent, "it is not sent"
    await until_offline(partition)


async def test_whoever_sends_a_cold_range_vouches_for_nothing_else_of_its_segment(
    disk: SimulatedDisk, partition: Partition, threads: ThreadPoolExecutor
) -> None:
    """What it brought back into memory was once taken for what had been verified there."""
    loop = asyncio.get_running_loop()
    page_cache = PageCache(loop, threads)
    integrity_of(partition).watch(page_cache)
    log = partition.log
    first = log.read_resident(0, 1 << 20, limit=1, min_one=True)
    append(partition, b"b")
    log.active_segment.file().sync()
    path = log.active_segment.path(".log")
    harmed = bytearray(disk.content(path))
    harmed[-1] ^= 1
    disk.put(path, bytes(harmed))
    sent: asyncio.Future[bool] = loop.create_future()
    page_cache.warm(first, sent.set_result)
    async with asyncio.timeout(15):
        assert await sent, "the range itself is whole"
    assert page_cache.is_warm(first)
    with pytest.raises(ColdRead):
        log.read_resident(1, 1 << 20, limit=2, min_one=True)


async def test_nobody_leads_in_an_earlier_epoch_than_its_log_ends_in(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up: list[str] = []
    monkeypatch.setattr(Quarantine, "give_up", lambda _, __, error: given_up.append(str(error)))
    epoch = partition.log.latest_epoch
    quarantine = quarantine_of(partition, new_runtime())
    assert not quarantine.refuses_epoch(partition, epoch)
    assert not given_up
    assert quarantine.refuses_epoch(partition, epoch - 1)
    assert len(given_up) == 1


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Segment]:
    """What was to be mended. Each mending ends unheard, as when the log is not the one that it was."""
    found: list[Segment] = []

    def begin(_: Mending, __: Partition, segment: Segment, ___: object) -> bool:
        found.append(segment)
        return True

    monkeypatch.setattr(Mending, "begin", begin)
    monkeypatch.setattr(Integrity, "is_elsewhere", lambda *_: True)
    answer(monkeypatch, Copies.WHOLE)
    monkeypatch.setattr(integrity_module, "LOOK_AGAIN_SECONDS", 0.01)
    return found


def answer(monkeypatch: pytest.MonkeyPatch, *answers: Copies) -> list[Copies]:
    """What others say when they are asked whether they have it; the last answer stays."""
    given: list[Copies] = []

    async def of(*_: object) -> Copies:
        given.append(answers[min(len(given), len(answers) - 1)])
        return given[-1]

    monkeypatch.setattr(OtherCopies, "of", of)
    return given


def sealed(partition: Partition) -> Segment:
    log = partition.log
    log.roll(NOW)
    append(partition, b"b")
    log.flush()
    return log.segments[0]


async def until_begun(begun: list[Segment], count: int) -> None:
    async with asyncio.timeout(15):
        while len(begun) < count:
            await asyncio.sleep(0.001)


async def test_a_mending_that_ended_unheard_is_begun_again(
    partition: Partition, begun: list[Segment]
) -> None:
    """Otherwise the range would be refused for ever: damage that is known is not found again."""
    integrity = integrity_of(partition)
    segment = sealed(partition)
    integrity.on_damage(partition, segment, Damage(0, segment.size, 0, 1, "a test"))
    await until_begun(begun, 2)
    await integrity.stop()
    assert begun[:2] == [segment, segment]


async def test_damage_found_while_an_index_is_made_again_is_still_mended(
    partition: Partition, begun: list[Segment]
) -> None:
    """The segment is another object then, which nobody mends."""
    integrity = integrity_of(partition)
    segment = sealed(partition)
    integrity._repair_index(partition, segment)
    integrity.on_damage(partition, segment, Damage(0, segment.size, 0, 1, "a test"))
    async with asyncio.timeout(15):
        while partition.log.segments[0] is segment:
            await asyncio.sleep(0.001)
    begun.clear()
    await until_begun(begun, 1)
    await integrity.stop()
    assert begun[0] is partition.log.segments[0]


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Damage that cannot be mended by parts, with another replica in sync."""
    found: list[str] = []

    def give_up(_: Quarantine, partition: Partition, error: Exception) -> None:
        found.append(str(error))
        partition.log.abandon()

    monkeypatch.setattr(Quarantine, "give_up", give_up)
    monkeypatch.setattr(Integrity, "is_elsewhere", lambda *_: True)
    monkeypatch.setattr(Mending, "begin", lambda *_: False)
    monkeypatch.setattr(integrity_module, "LOOK_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(integrity_module, "SECOND_QUESTION_SECONDS", 0.01)
    return found


async def until_asked(given: list[Copies], count: int) -> None:
    async with asyncio.timeout(15):
        while len(given) < count:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)


@pytest.mark.parametrize("copies", [Copies.REFUSED, Copies.UNKNOWN])
async def test_no_replica_is_given_up_before_another_has_proved_that_it_has_the_range(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, given_up: list[str], copies: Copies
) -> None:
    """Two with the same damage took each other for whole, because they were in sync: nobody was left."""
    given = answer(monkeypatch, copies)
    integrity = integrity_of(partition)
    segment = sealed(partition)
    integrity.on_damage(partition, segment, Damage(0, segment.size, 0, 1, "a test"))
    assert integrity.unmended() == [], "others are asked first"
    await until_asked(given, 3)
    assert not given_up
    assert [damage.offset for _, damage in integrity.unmended()] == [0], "also while they are asked again"
    assert integrity.may_be_had(partition) == (copies == Copies.UNKNOWN)
    answer(monkeypatch, Copies.WHOLE)
    async with asyncio.timeout(15):
        while not given_up:
            await asyncio.sleep(0.001)
    await integrity.stop()


async def test_a_leader_asks_twice_before_it_gives_itself_up(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, given_up: list[str]
) -> None:
    """Whoever has its range may be about to give itself up, for another range that this leader has."""
    given = answer(monkeypatch, Copies.WHOLE, Copies.REFUSED)
    integrity = integrity_of(partition)
    segment = sealed(partition)
    integrity.on_damage(partition, segment, Damage(0, segment.size, 0, 1, "a test"))
    await until_asked(given, 4)
    await integrity.stop()
    assert not given_up


async def test_a_follower_waits_until_it_knows_what_is_committed(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, given_up: list[str]
) -> None:
    """A range is mended by parts only where it is committed. Damage that was found before the leader had said
    so cost the follower all of its files."""
    answer(monkeypatch, Copies.WHOLE)
    integrity = integrity_of(partition)
    segment = sealed(partition)
    partition.assign(row(2, 2, (1, 2)), 1, 0.0)
    partition.high_watermark = 0
    mended: list[Segment] = []

    def begin(_: Mending, partition: Partition, segment: Segment, __: object) -> bool:
        is_committed = partition.high_watermark >= 1
        mended.extend([segment] * is_committed)
        return is_committed

    monkeypatch.setattr(Mending, "begin", begin)
    integrity.on_damage(partition, segment, Damage(0, segment.size, 0, 1, "a test"))
    partition.high_watermark = 2
    await until_begun(mended, 1)
    await integrity.stop()
    assert not given_up


async def test_a_follower_that_hears_nothing_of_what_is_committed_is_fetched_again(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, given_up: list[str]
) -> None:
    answer(monkeypatch, Copies.WHOLE)
    integrity = integrity_of(partition)
    segment = sealed(partition)
    partition.assign(row(2, 2, (1, 2)), 1, 0.0)
    partition.high_watermark = 0
    integrity.on_damage(partition, segment, Damage(0, segment.size, 0, 1, "a test"))
    async with asyncio.timeout(15):
        while not given_up:
            await asyncio.sleep(0.001)
    await integrity.stop()

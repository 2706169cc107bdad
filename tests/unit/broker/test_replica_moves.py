"""Replicas that move between log directories, step by step, while the broker goes on around them."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.storage import replica_moves
from headrace.broker.storage.flusher import Flusher
from headrace.broker.storage.replica_moves import ReplicaMoves
from headrace.core.errors import HeadraceError, NotLeader
from headrace.core.ids import TopicPartition
from headrace.log.manager import LogManager
from headrace.log.moving.plan import take_plan
from headrace.metrics.histogram import LatencyHistogram
from headrace.metrics.registry import TopicMetrics
from headrace.replication.partition import Partition
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW, read_records
from tests.unit.log.moving.world import PARTITION, TOPIC_ID, folders, new_log, open_manager
from tests.unit.replication.replicas import append, row

RECORDS = 20
UNLIMITED = 1 << 62


class InPlace(Executor):
    """Runs what a thread should, at once, after a hook that may do what happens meanwhile."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.before: Callable[[str], None] = lambda _: None

    def submit(self, call: Any, /, *args: Any, **named: Any) -> Future[Any]:
        inner = getattr(call, "func", call)
        name = inner.__qualname__
        self.before(name)
        self.ran.append(name)
        done: Future[Any] = Future()
        try:
            done.set_result(call(*args, **named))
        except Exception as error:
            done.set_exception(error)
        return done


class World:
    def __init__(self, manager: LogManager) -> None:
        self.logs = manager
        self.threads = InPlace()
        log = manager.logs.get(PARTITION) or new_log(manager)
        self.partition = Partition(PARTITION, TOPIC_ID, log, TopicMetrics())
        self.partition.assign(row(1, 0, (1,), replicas=(1,)), 1, 0.0)
        for number in range(log.end_offset, RECORDS):
            append(self.partition, b"%d" % number)
        self.hosted: dict[TopicPartition, Partition] = {PARTITION: self.partition}
        self.now = 0.0
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.told: list[str] = []
        self.doubted: list[int] = []
        self.given_up: list[HeadraceError] = []
        self.config = SimpleNamespace(replica_alter_log_dirs_io_max_bytes_per_second=UNLIMITED)
        loop = asyncio.get_running_loop()
        say = lambda event, **said: self.events.append((event, said))  # noqa: E731 - of both levels
        runtime: Any = SimpleNamespace(
            loop=loop,
            log=SimpleNamespace(info=say, error=say),
            clock=SimpleNamespace(monotonic=lambda: self.now, wall_ms=lambda: NOW),
            config=self.config,
        )
        replicas: Any = SimpleNamespace(
            follow=lambda _: None,
            unfollow=lambda _: None,
            directories=SimpleNamespace(
                consider=lambda partition: self.told.append(partition.log.directory.path)
            ),
        )
        self.flusher = Flusher(loop, self.threads, LatencyHistogram())
        partitions: Any = SimpleNamespace(find=lambda *name: self.hosted.get(TopicPartition(*name)))
        maintenance: Any = SimpleNamespace(checkpoint=self._checkpoint)
        integrity: Any = SimpleNamespace(doubt=lambda _, offset: self.doubted.append(offset))
        quarantine: Any = SimpleNamespace(give_up=self._give_up)
        self.moves = ReplicaMoves(
            runtime,
            manager,
            partitions,
            replicas,
            self.flusher,
            maintenance,
            integrity,
            quarantine,
            self.threads,
        )

    async def _checkpoint(self) -> None:
        for job in self.logs.take_checkpoint({PARTITION: self.partition.high_watermark}):
            job.run()
            job.done()

    def _give_up(self, partition: Partition, error: Any) -> None:
        self.given_up.append(error)
        del self.hosted[PARTITION]
        partition.resign()
        self.logs.quarantine(PARTITION, error)

    async def settle(self) -> None:
        """Until nothing is left to be moved."""
        for _ in range(1000):
            if not self.moves._goals:
                break
            await asyncio.sleep(0)
        assert not self.moves._goals
        await self.moves.stop()

    def values(self) -> list[bytes | None]:
        return [record.value for record in read_records(self.partition.log)]


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(1)


@pytest.fixture
def manager(disk: SimulatedDisk) -> LogManager:
    return open_manager(disk, ("/a", "/b", "/c"))


@pytest.fixture
async def world(manager: LogManager, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(replica_moves, "PIECE_BYTES", 300)
    monkeypatch.setattr(replica_moves, "SWAP_BYTES", 100)
    made = World(manager)
    made.moves.start()
    return made


async def test_a_replica_moves_while_it_is_written_to(world: World, disk: SimulatedDisk) -> None:
    written = RECORDS

    def write(step: str) -> None:
        nonlocal written
        if step == "FutureFolder.copy":
            append(world.partition, b"%d" % written)
            written += 1
        elif step.startswith("ReplicaSwap"):
            with pytest.raises(NotLeader):
                append(world.partition, b"refused")

    world.threads.before = write
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert world.partition.log.directory.path == "/b"
    assert world.values() == [b"%d" % number for number in range(written)]
    assert written > RECORDS + 3
    assert world.told == ["/b"]
    append(world.partition, b"more")
    assert world.partition.high_watermark == written + 1
    assert [event for event, _ in world.events] == ["replica move started", "replica moved"]
    saved = world.logs.checkpoints_in(world.logs.directories[1])
    assert saved.kept == set()
    assert saved.recovery_points[PARTITION] == written
    assert PARTITION not in world.logs.checkpoints_in(world.logs.directories[0]).recovery_points
    assert folders(disk)["/b"] == [str(PARTITION)]
    assert [*world.moves.futures()] == []


async def test_a_flush_that_somebody_waits_for_is_answered_by_the_move(world: World) -> None:
    answers: list[HeadraceError | None] = []

    def ask(step: str) -> None:
        if step == "ReplicaSwap.run":
            world.flusher.flush(world.partition.log, answers.append)
            assert not answers

    world.threads.before = ask
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert answers == [None]
    assert world.partition.log.synced_offset == RECORDS


async def test_what_the_metadata_says_meanwhile_holds_afterwards(world: World) -> None:
    def elect(step: str) -> None:
        if step == "ReplicaSwap.settle":
            world.partition.assign(row(2, 7, (1, 2), replicas=(1, 2)), 1, 0.0)
            assert world.partition.leader_epoch == 0

    world.threads.before = elect
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert world.partition.log.directory.path == "/b"
    assert (world.partition.leader_epoch, world.partition.is_leader) == (7, False)


async def test_to_where_it_is_ends_a_move(world: World, disk: SimulatedDisk) -> None:
    seen: list[tuple[str, bool]] = []

    def cancel(step: str) -> None:
        if step == "FutureFolder.copy" and len(seen) < 2:
            seen.extend((each.directory.path, each.size > 0) for each in world.moves.futures())
            if len(seen) == 2:
                world.moves.move(world.partition, world.logs.directories[0])

    world.threads.before = cancel
    world.moves.move(world.partition, world.logs.directories[1])
    await asyncio.sleep(0)
    await world.settle()
    assert seen == [("/b", False), ("/b", True)]
    assert world.partition.log.directory.path == "/a"
    assert folders(disk) == {"/a": [str(PARTITION)], "/b": []}
    assert "ReplicaSwap.run" not in world.threads.ran


async def test_to_a_third_directory_changes_the_goal(world: World, disk: SimulatedDisk) -> None:
    copied = 0

    def redirect(step: str) -> None:
        nonlocal copied
        copied += step == "FutureFolder.copy"
        if copied == 2:
            world.moves.move(world.partition, world.logs.directories[2])

    world.threads.before = redirect
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert world.partition.log.directory.path == "/c"
    assert folders(disk)["/b"] == []
    assert len(world.values()) == RECORDS


async def test_a_partition_that_is_deleted_is_not_moved(world: World, disk: SimulatedDisk) -> None:
    def delete(step: str) -> None:
        if step == "ReplicaSwap.run":
            world.partition.resign()
            del world.hosted[PARTITION]
            world.logs.delete([PARTITION], NOW)

    world.threads.before = delete
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert PARTITION not in world.logs.logs
    assert not world.logs.is_leaving(PARTITION)
    assert folders(disk) == folders(disk, ending="-delete")


async def test_damage_ends_the_move_and_is_looked_at(world: World, disk: SimulatedDisk) -> None:
    segment = world.partition.log.segments[1]
    disk.flip(segment.path(".log"), 8 * 65)
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert world.doubted == [segment.base_offset]
    assert [event for event, _ in world.events] == ["replica move started", "replica not moved"]
    assert folders(disk)["/b"] == []
    append(world.partition, b"more")


async def test_what_looks_like_damage_because_the_segment_was_replaced_is_none(
    world: World, disk: SimulatedDisk
) -> None:
    log = world.partition.log
    old = log.segments[1]
    whole = disk.content(old.path(".log"))

    def compact(step: str) -> None:
        if step == "FutureFolder.copy" and old in log.segments:
            new = type(old)(log.directory, log.path, old.base_offset, created_ms=NOW)
            new.size = old.size
            log.replace_segments(1, 1, new)
            disk.put(old.path(".log"), b"\0" * old.size)
        elif step == "FutureFolder.copy":
            disk.put(old.path(".log"), whole)

    world.threads.before = compact
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert world.doubted == []
    assert log.directory.path == "/b"
    assert len(world.values()) == RECORDS


async def test_a_target_that_fails_leaves_the_replica_where_it_is(world: World, disk: SimulatedDisk) -> None:
    def fail(step: str) -> None:
        if step == "ReplicaSwap.run":
            disk.faults.append(Fault("sync_dir", "/b", errno.EIO))

    world.threads.before = fail
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert not world.logs.directories[1].is_online
    assert world.partition.log.directory.path == "/a"
    append(world.partition, b"more")
    assert world.given_up == []


async def test_a_target_that_fails_meanwhile_ends_the_move_and_says_so(world: World) -> None:
    target = world.logs.directories[1]

    def fail(_: str) -> None:
        target.fail(OSError(errno.EIO, "gone"), "read it")

    world.threads.before = fail
    world.moves.move(world.partition, target)
    await world.settle()
    assert [event for event, _ in world.events] == ["replica move started", "replica not moved"]
    assert world.partition.log.directory.path == "/a"
    append(world.partition, b"more")


async def test_if_nobody_knows_whether_the_old_folder_is_gone_nothing_is_appended(
    world: World, disk: SimulatedDisk
) -> None:
    def fail(step: str) -> None:
        if step == "ReplicaSwap.settle":
            disk.faults.append(Fault("sync_dir", "/a", errno.EIO))

    world.threads.before = fail
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    assert len(world.given_up) == 1
    assert not world.partition.log.is_open


@pytest.mark.parametrize("swap_bytes", [100, 1 << 20], ids=["a large log", "a small log"])
async def test_the_rate_is_kept_and_may_be_raised_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, swap_bytes: int
) -> None:
    monkeypatch.setattr(replica_moves, "SWAP_BYTES", swap_bytes)
    size = take_plan(world.partition.log).size

    async def pause(seconds: float) -> None:
        assert seconds <= 1.0
        world.now += seconds
        if world.now > 5.0:
            world.config.replica_alter_log_dirs_io_max_bytes_per_second = size
        await asyncio.sleep(0)

    monkeypatch.setattr(world.moves, "_pause", pause)
    world.config.replica_alter_log_dirs_io_max_bytes_per_second = 100
    copied: list[tuple[float, int]] = []

    def look(step: str) -> None:
        if step == "FutureFolder.copy":
            copied.extend((world.now, each.size) for each in world.moves.futures())

    world.threads.before = look
    world.moves.move(world.partition, world.logs.directories[1])
    await world.settle()
    slow = [each for each in copied if each[0] <= 5.0]
    assert len(slow) > 3
    # A piece is what a second allows, or a batch if that is more.
    assert all(done <= 100 * (when + 1) + 100 for when, done in slow)
    assert world.now < 10
    assert world.partition.log.directory.path == "/b"


async def test_a_move_that_was_interrupted_goes_on(
    manager: LogManager, disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_moves, "PIECE_BYTES", 300)
    monkeypatch.setattr(replica_moves, "SWAP_BYTES", 0)
    world = World(manager)
    world.moves.start()
    stopping: list[asyncio.Task[None]] = []

    def stop(step: str) -> None:
        if step == "FutureFolder.copy" and not stopping:
            stopping.append(asyncio.get_running_loop().create_task(world.moves.stop()))

    world.threads.before = stop
    world.moves.move(world.partition, world.logs.directories[1])
    while not stopping:
        await asyncio.sleep(0)
    await stopping[0]
    assert world.partition.log.directory.path == "/a"
    assert len(folders(disk, ending="-future")["/b"]) == 1
    manager.shut_down(1, {PARTITION: RECORDS})
    again = open_manager(disk, ("/a", "/b", "/c"))
    world = World(again)
    world.moves.start()
    await world.settle()
    assert again.get(PARTITION).directory.path == "/b"
    assert world.values() == [b"%d" % number for number in range(RECORDS)]

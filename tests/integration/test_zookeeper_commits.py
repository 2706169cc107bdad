"""Commits to a real server whose connection breaks, whose controller is replaced, and what they cost."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable

import pytest

from headrace.coordination.ensemble import metadata_log
from headrace.coordination.ensemble.connection import SWITCH_SECONDS
from headrace.coordination.zookeeper import ZooKeeperCoordination
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    CommittedBatch,
    CommitUnknown,
    ControllerFenced,
    CoordinationUnavailable,
    SequenceTaken,
    SessionState,
    SnapshotPointer,
)
from headrace.testing.zookeeper import ZooKeeper
from tests.host import Stopwatch
from tests.integration.zookeeper_processes import SessionLog, connected
from tests.integration.zookeeper_relay import Relay
from tests.unit.coordination.hints import BOUND_SECONDS
from tests.unit.coordination.worlds import batch

ONE, TWO = BrokerId(1), BrokerId(2)
OwnZooKeeper = Callable[[int], ZooKeeper]


async def test_a_commit_whose_answer_was_lost_is_found_by_reading(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with (
        Relay(shared_zookeeper.nodes[0]) as relay,
        connected(relay.connect + chroot) as port,
        connected(shared_zookeeper.connect + chroot) as witness,
    ):
        epoch = await port.claim_controller(ONE)
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)
        sent = batch(1, b"unknown", epoch=epoch)
        log = SessionLog(port)
        relay.hold(answers=True)
        commit = asyncio.create_task(port.append(1, sent, epoch))
        async with asyncio.timeout(BOUND_SECONDS):
            while await witness.end() < 2:
                await asyncio.sleep(0.01)
        relay.cut()
        with pytest.raises(CommitUnknown):
            await commit
        relay.release()
        await log.until(SessionState.CONNECTED)
        assert list(await port.read(1)) == [CommittedBatch(1, sent)]
        with pytest.raises(SequenceTaken):
            await port.append(1, sent, epoch)
        await port.append(2, batch(2, b"b", epoch=epoch), epoch)


async def test_a_commit_that_never_arrived_is_missed_by_reading(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with Relay(shared_zookeeper.nodes[0]) as relay, connected(relay.connect + chroot) as port:
        epoch = await port.claim_controller(ONE)
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)
        log = SessionLog(port)
        relay.hold(requests=True)
        commit = asyncio.create_task(port.append(1, batch(1, b"lost", epoch=epoch), epoch))
        await asyncio.sleep(0.05)
        relay.cut()
        with pytest.raises(CommitUnknown):
            await commit
        relay.release()
        await log.until(SessionState.CONNECTED)
        assert list(await port.read(1)) == []
        await port.append(1, batch(1, b"b", epoch=epoch), epoch)
        assert await port.end() == 2


async def test_a_commit_that_arrives_after_a_successor_is_refused(own_zookeeper: OwnZooKeeper) -> None:
    zookeeper = own_zookeeper(1)  # where nobody else writes: writes are counted
    async with (
        Relay(zookeeper.nodes[0]) as relay,
        connected(relay.connect) as zombie,
        connected(zookeeper.connect) as successor,
    ):
        over = await zombie.claim_controller(ONE)
        await zombie.append(0, batch(0, b"a", epoch=over), over)
        relay.hold(requests=True)
        late = asyncio.create_task(zombie.append(1, batch(1, b"late", epoch=over), over))
        await asyncio.sleep(0.05)
        epoch = await successor.claim_controller(TWO, deposing=over)
        relay.release()
        with pytest.raises(ControllerFenced):
            await late
        assert await successor.end() == 1
        own = batch(1, b"b", epoch=epoch)
        await successor.append(1, own, epoch)
        # The zombie knows, and does not even ask again.
        zxid = zookeeper.nodes[0].zxid()
        with pytest.raises(ControllerFenced):
            await zombie.append(1, batch(1, b"again", epoch=over), over)
        assert zookeeper.nodes[0].zxid() == zxid
        assert list(await zombie.read(1)) == [CommittedBatch(1, own)]


async def test_controller_whose_answer_was_lost_is_settled_by_reading(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with (
        Relay(shared_zookeeper.nodes[0]) as relay,
        connected(relay.connect + chroot) as port,
        connected(shared_zookeeper.connect + chroot) as witness,
    ):
        first = await port.claim_controller(ONE)
        log = SessionLog(port)
        entering = asyncio.create_task(port.claim_controller(ONE))
        # The controller is taken by a read and then a write. Let answers pass one by one until the write has
        # happened at the server, and lose its answer.
        while True:
            relay.hold(answers=True)
            await asyncio.sleep(0.02)
            if await witness.latest_epoch() != first:
                break
            relay.release()
            await asyncio.sleep(0)
        assert not entering.done()
        relay.cut()
        relay.release()
        epoch = await asyncio.wait_for(entering, BOUND_SECONDS)
        assert epoch == first + 1
        assert log.states == [SessionState.SUSPENDED, SessionState.CONNECTED]
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)


async def test_controller_that_was_not_taken_is_not_claimed(shared_zookeeper: ZooKeeper, chroot: str) -> None:
    async with (
        Relay(shared_zookeeper.nodes[0]) as relay,
        connected(relay.connect + chroot, session_timeout_ms=4_000) as port,
        connected(shared_zookeeper.connect + chroot) as other,
    ):
        await other.claim_controller(TWO)
        relay.hold(requests=True)
        entering = asyncio.create_task(port.claim_controller(ONE))
        await asyncio.sleep(0.05)
        await relay.close()
        with pytest.raises(CoordinationUnavailable):
            await entering
        controller = await other.active_controller()
        assert controller is not None
        assert controller.holder == TWO


async def test_commits_across_crashes_of_the_server_are_all_there(own_zookeeper: OwnZooKeeper) -> None:
    """Kill the server in the middle of commits; settle each unknown one by reading; compare the whole log."""
    zookeeper = own_zookeeper(1)
    (node,) = zookeeper.nodes
    chance = random.Random(17)
    committed: list[CommittedBatch] = []
    unknown = 0
    async with connected(zookeeper.connect + "/crashes", session_timeout_ms=10_000) as port:
        log = SessionLog(port)
        epoch = await port.claim_controller(ONE)
        for _ in range(4):
            crash: asyncio.Task[None] | None = None
            begun = len(committed)
            while True:
                at = len(committed)
                if crash is None and at > begun + 1:
                    crash = asyncio.create_task(_after(chance.uniform(0.0, 0.08), node.kill))
                sent = batch(at, b"%d" % chance.randrange(1 << 40), epoch=epoch)
                try:
                    await port.append(at, sent, epoch)
                    committed.append(CommittedBatch(at, sent))
                except (CommitUnknown, CoordinationUnavailable) as error:
                    unknown += isinstance(error, CommitUnknown)
                    break
            assert crash is not None
            await crash
            await asyncio.to_thread(node.restart)
            await log.until(SessionState.CONNECTED)
            found = list(await port.read(at))
            assert found in ([], [CommittedBatch(at, sent)])
            committed += found
        assert SessionState.LOST not in log.states
        whole: list[CommittedBatch] = []
        while part := await port.read(len(whole)):
            whole += part
        assert whole == committed
        assert unknown > 0


async def _after(seconds: float, act: Callable[[], None]) -> None:
    await asyncio.sleep(seconds)
    await asyncio.to_thread(act)


async def test_two_clusters_on_one_ensemble_know_nothing_of_each_other(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with (
        connected(shared_zookeeper.connect + chroot + "/deeper/one") as one,
        connected(shared_zookeeper.connect + chroot + "/deeper/two") as two,
    ):
        assert await one.claim_cluster_id("first", directories_empty=True) == "first"
        assert await two.claim_cluster_id("second", directories_empty=True) == "second"
        epoch = await one.claim_controller(ONE)
        await one.register(ONE, b"")
        await one.append(0, batch(0, b"a", epoch=epoch), epoch)
        assert await two.active_controller() is None
        assert await two.members() == {}
        assert await two.end() == 0
        other = await two.claim_controller(TWO)
        await two.append(0, batch(0, b"b", epoch=other), other)
        await one.append(1, batch(1, b"c", epoch=epoch), epoch)


async def test_each_change_is_one_write(own_zookeeper: OwnZooKeeper) -> None:
    zookeeper = own_zookeeper(1)  # where nobody else writes: writes are counted
    (node,) = zookeeper.nodes
    async with (
        connected(zookeeper.connect) as port,
        connected(zookeeper.connect) as old,
    ):

        async def writes(change: Awaitable[object]) -> int:
            before = node.zxid()
            await change
            return node.zxid() - before

        await old.claim_controller(TWO)
        assert await writes(port.claim_controller(ONE)) == 1
        epoch = await port.latest_epoch()
        for offset in range(5):
            assert await writes(port.append(offset, batch(offset, b"a", epoch=epoch), epoch)) == 1
        large = batch(5, random.Random(1).randbytes(500_000), epoch=epoch)
        assert await writes(port.append(5, large, epoch)) == 1
        assert await writes(port.register(ONE, b"")) == 1
        assert await writes(port.register(ONE, b"again")) == 1
        assert await writes(port.move_snapshot(SnapshotPointer(3, 1, (ONE,)), epoch)) == 1
        assert await writes(port.trim(3, epoch)) == 1
        assert await writes(port.trim(3, epoch)) == 0
        for reading in (port.read(0), port.end(), port.active_controller(), port.members(), port.snapshot()):
            assert await writes(reading) == 0


async def test_a_trim_of_many_batches_is_a_few_writes_and_leaves_no_hole(
    own_zookeeper: OwnZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    zookeeper = own_zookeeper(1)  # where nobody else writes: writes are counted
    monkeypatch.setattr(metadata_log, "DELETED_TOGETHER", 10)
    (node,) = zookeeper.nodes
    async with connected(zookeeper.connect) as port:
        epoch = await port.claim_controller(ONE)
        for offset in range(0, 60, 2):
            await port.append(offset, batch(offset, b"a", b"b", epoch=epoch), epoch)
        before = node.zxid()
        await port.trim(51, epoch)
        assert node.zxid() - before == 3
        assert await port.start_offset() == 50
        assert [found.sequence for found in await port.read(0)] == [50, 52, 54, 56, 58]
        await port.trim(60, epoch)
        assert await port.start_offset() == 58
        assert await port.end() == 60


async def test_a_batch_beyond_the_limit_is_refused_and_harms_nobody(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with connected(shared_zookeeper.connect + chroot) as port:
        epoch = await port.claim_controller(ONE)
        with pytest.raises(ValueError, match="524288 at most"):
            await port.append(0, batch(0, bytes(600_000), epoch=epoch), epoch)
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)


async def test_large_batches_are_read_in_parts(shared_zookeeper: ZooKeeper, chroot: str) -> None:
    async with connected(shared_zookeeper.connect + chroot) as port:
        epoch = await port.claim_controller(ONE)
        value = random.Random(2).randbytes(400_000)
        for offset in range(24):
            await port.append(offset, batch(offset, value, epoch=epoch), epoch)
        sizes, seen = [], 0
        while found := await port.read(seen):
            sizes.append(len(found))
            seen += len(found)
        assert seen == 24
        assert len(sizes) > 1


async def test_a_loop_that_is_busy_does_not_starve_its_commits(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    """The connection has a thread of its own, which must get the interpreter from a loop that never rests."""
    async with connected(shared_zookeeper.connect + chroot) as port:
        assert sys.getswitchinterval() <= SWITCH_SECONDS
        epoch = await port.claim_controller(ONE)
        spinning = asyncio.create_task(_spin())
        try:
            await asyncio.wait_for(_commit_some(port, epoch), BOUND_SECONDS)
        finally:
            spinning.cancel()


async def _commit_some(port: ZooKeeperCoordination, epoch: ControllerEpoch) -> None:
    slowest = 0.0
    for offset in range(50):
        watch = Stopwatch()
        await port.append(offset, batch(offset, b"a", epoch=epoch), epoch)
        slowest = max(slowest, watch.seconds)
    assert slowest < 2.0


async def _spin() -> None:
    loop = asyncio.get_running_loop()
    while True:
        end = loop.time() + 0.001
        while loop.time() < end:
            pass
        await asyncio.sleep(0)

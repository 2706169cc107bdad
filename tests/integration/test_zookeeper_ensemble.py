"""Three real servers: the loss of their leader, and of their quorum."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headrace.coordination.zookeeper import ZooKeeperCoordination
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    CommittedBatch,
    CommitUnknown,
    CoordinationUnavailable,
    SessionState,
)
from headrace.testing.zookeeper import Node, ZooKeeper
from tests.integration.zookeeper_processes import SessionLog, connected
from tests.unit.coordination.hints import BOUND_SECONDS, Hints
from tests.unit.coordination.worlds import batch

pytestmark = pytest.mark.timeout(300)  # on a machine that stalls ZooKeeper's servers elect for a minute

ONE, TWO = BrokerId(1), BrokerId(2)
OwnZooKeeper = Callable[[int], ZooKeeper]


class Committer:
    """Commits one batch after the other, and settles each unknown one by reading before the next."""

    def __init__(self, port: ZooKeeperCoordination, epoch: ControllerEpoch) -> None:
        self._port = port
        self._epoch = epoch
        self.committed: list[CommittedBatch] = []
        self.unknown = 0

    async def commit(self) -> None:
        """Until one more is committed, however often the service fails meanwhile."""
        at = len(self.committed)
        sent = batch(at, b"%d" % at, epoch=self._epoch)
        async with asyncio.timeout(BOUND_SECONDS):
            while True:
                try:
                    await self._port.append(at, sent, self._epoch)
                    break
                except CommitUnknown:
                    self.unknown += 1
                    if await self._is_there(at):
                        break
                except CoordinationUnavailable:
                    await asyncio.sleep(0.01)
        self.committed.append(CommittedBatch(at, sent))

    async def _is_there(self, sequence: int) -> bool:
        while True:
            try:
                return bool(await self._port.read(sequence))
            except CoordinationUnavailable:
                await asyncio.sleep(0.01)


async def _log_of(port: ZooKeeperCoordination) -> list[CommittedBatch]:
    whole: list[CommittedBatch] = []
    while part := await port.read(len(whole)):
        whole += part
    return whole


async def _until_connected(port: ZooKeeperCoordination) -> None:
    async with asyncio.timeout(BOUND_SECONDS):
        while port.session is not SessionState.CONNECTED:
            await asyncio.sleep(0.01)


async def _until_serving(nodes: list[Node]) -> None:
    for node in nodes:
        await asyncio.to_thread(node.wait_ready)


async def test_the_loss_of_the_leading_server_costs_no_commit(own_zookeeper: OwnZooKeeper) -> None:
    zookeeper = own_zookeeper(3)
    async with (
        connected(zookeeper.connect + "/c") as port,
        connected(zookeeper.connect + "/c") as other,
    ):
        log = SessionLog(port)
        committer = Committer(port, await port.claim_controller(ONE))
        registered = await port.register(ONE, b"here")
        for _ in range(20):
            await committer.commit()
        leader = zookeeper.leader()
        crash = asyncio.create_task(asyncio.to_thread(leader.kill))
        for _ in range(40):
            await committer.commit()
        await crash
        assert zookeeper.leader() is not leader
        await _until_connected(other)
        assert await _log_of(other) == committer.committed
        assert SessionState.LOST not in log.states
        assert (await other.members())[ONE].epoch == registered
        await asyncio.to_thread(leader.restart)
        await committer.commit()
        await _until_connected(other)
        assert await _log_of(other) == committer.committed


async def test_a_lost_quorum_stops_commits_and_recovers_alone(own_zookeeper: OwnZooKeeper) -> None:
    zookeeper = own_zookeeper(3)
    async with (
        connected(zookeeper.connect, session_timeout_ms=20_000) as port,
        connected(zookeeper.connect, session_timeout_ms=20_000) as other,
    ):
        log = SessionLog(port)
        epoch = await port.claim_controller(ONE)
        registered = await port.register(ONE, b"here")
        committer = Committer(port, epoch)
        await committer.commit()
        members = Hints()
        other.watch_members(members)
        down = zookeeper.nodes[1:]
        for node in down:
            await asyncio.to_thread(node.kill)
        await log.until(SessionState.SUSPENDED)
        with pytest.raises(CoordinationUnavailable):
            await port.append(1, batch(1, b"refused", epoch=epoch), epoch)
        with pytest.raises(CoordinationUnavailable):
            await other.claim_controller(TWO)
        for node in down:
            node.launch()
        await _until_serving(zookeeper.nodes)
        await log.until(SessionState.CONNECTED)
        assert SessionState.LOST not in log.states
        # Nobody was deposed and nobody has left.
        assert await port.active_controller() == (ONE, epoch)
        assert (await port.members())[ONE].epoch == registered
        await committer.commit()
        assert await _log_of(port) == committer.committed
        # The watch of the other process lives again.
        before = members.count
        await port.deregister(ONE, registered)

        async def is_gone() -> bool:
            try:
                return not await other.members()
            except CoordinationUnavailable:
                return False

        await members.until(is_gone, since=before)


async def test_a_paused_server_is_left_for_another(own_zookeeper: OwnZooKeeper) -> None:
    zookeeper = own_zookeeper(3)
    async with connected(zookeeper.connect, session_timeout_ms=20_000) as port:
        log = SessionLog(port)
        committer = Committer(port, await port.claim_controller(ONE))
        await committer.commit()
        used = next(node for node in zookeeper.nodes if _has_sessions(node))
        used.pause()
        await committer.commit()
        used.resume()
        assert SessionState.LOST not in log.states
        assert await _log_of(port) == committer.committed


def _has_sessions(node: Node) -> bool:
    return any("sid=0x" in line for line in node.ask("cons").splitlines())


async def test_what_was_committed_a_lagging_server_tells(own_zookeeper: OwnZooKeeper) -> None:
    """A read asks its server to catch up first, so nobody sees less than what was committed before it."""
    zookeeper = own_zookeeper(3)
    leader = zookeeper.leader()
    lagging = next(node for node in zookeeper.nodes if node is not leader)
    async with (
        connected(leader.address, session_timeout_ms=60_000) as writer,
        connected(lagging.address, session_timeout_ms=60_000) as reader,
    ):
        log = SessionLog(reader)
        epoch = await writer.claim_controller(ONE)
        end = compared = rounds = 0
        behind = 60
        while compared < 3 and rounds < 10:
            rounds += 1
            lagging.pause()
            for _ in range(behind):
                await writer.append(end, batch(end, b"a", epoch=epoch), epoch)
                end += 1
            registered = await writer.register(ONE, b"")
            reading = asyncio.gather(
                reader.end(), reader.members(), reader.active_controller(), reader.latest_epoch()
            )
            await asyncio.sleep(0)
            lagging.resume()
            try:
                seen, members, controller, latest = await reading
            except CoordinationUnavailable:  # it took so long that the reader, or the leader, gave it up
                behind = max(1, behind // 2)
                await log.until(SessionState.CONNECTED)
                continue
            assert (seen, members[ONE].epoch, controller, latest) == (end, registered, (ONE, epoch), epoch)
            compared += 1
            epoch = await writer.claim_controller(ONE)
        assert compared > 0

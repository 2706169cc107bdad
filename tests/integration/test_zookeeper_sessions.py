"""Sessions that are suspended, lost and back, on a real server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from headrace.config.zookeeper_address import ZooKeeperAddress, parse_zookeeper_connect
from headrace.coordination.ensemble.requests import children, create
from headrace.coordination.ensemble.session import Session
from headrace.coordination.zookeeper import ZooKeeperCoordination
from headrace.core.errors import ConfigError
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ControllerFenced,
    CoordinationUnavailable,
    SessionState,
    SnapshotPointer,
)
from headrace.testing.zookeeper import HOST, ZooKeeper, free_ports
from tests.host import Stopwatch
from tests.integration.zookeeper_processes import SessionLog, connected
from tests.integration.zookeeper_relay import Relay
from tests.unit.coordination.hints import Hints
from tests.unit.coordination.worlds import batch

ONE, TWO = BrokerId(1), BrokerId(2)
CONNECTED, SUSPENDED, LOST = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.LOST
SHORT_MS = 3_000
"""Of a session that a test lets end: as long as a busy machine may stand still without ending it."""

OwnZooKeeper = Callable[[int], ZooKeeper]


async def test_a_broken_connection_is_suspended_and_comes_back_as_the_same_session(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with Relay(shared_zookeeper.nodes[0]) as relay, connected(relay.connect + chroot) as port:
        epoch = await port.claim_controller(ONE)
        registered = await port.register(ONE, b"here")
        log = SessionLog(port)
        relay.cut()
        await log.until(SUSPENDED, CONNECTED)
        assert log.states == [SUSPENDED, CONNECTED]
        assert (await port.members())[ONE].epoch == registered
        assert await port.active_controller() == (ONE, epoch)
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)


async def test_a_session_is_as_long_as_the_servers_grant_it(
    shared_zookeeper: ZooKeeper, chroot: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What rests on its length, as the lease of readings does, must not rest on what was only asked for."""
    address = parse_zookeeper_connect(shared_zookeeper.connect + chroot)
    assert address is not None
    for asked, granted in ((61_000, 60_000), (6_000, 6_000)):
        caplog.clear()
        port = ZooKeeperCoordination(address, session_timeout_ms=asked, connection_timeout_ms=10_000)
        await port.start()
        try:
            await port.members()  # the handshake is over
            assert port.session_timeout_ms == granted
            assert ("raise maxSessionTimeout" in caplog.text) == (granted < asked)
        finally:
            await port.close()


@pytest.mark.parametrize("request_", ["ask", "change"])
async def test_a_connection_that_breaks_while_a_broker_starts_is_made_again(
    shared_zookeeper: ZooKeeper, chroot: str, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    original = getattr(Session, request_)
    cut: list[str] = []

    async def cutting(session: Session, *requests: Any) -> Any:
        answer = original(session, *requests)
        if stage not in cut:
            cut.append(stage)
            relay.cut()
        return await answer

    async with Relay(shared_zookeeper.nodes[0]) as relay:
        monkeypatch.setattr(Session, request_, cutting)
        stage = "start"
        async with connected(relay.connect + chroot) as port:
            stage = "claim"
            assert await port.claim_cluster_id("mine", directories_empty=True) == "mine"
            assert await port.claim_cluster_id("another", directories_empty=False) == "mine"
            assert cut == ["start", "claim"]


async def test_a_suspended_session_is_asked_for_nothing(shared_zookeeper: ZooKeeper, chroot: str) -> None:
    async with Relay(shared_zookeeper.nodes[0]) as relay, connected(relay.connect + chroot) as port:
        epoch = await port.claim_controller(ONE)
        log = SessionLog(port)
        await relay.close()
        await log.until(SUSPENDED)
        watch = Stopwatch()
        for attempt in (
            port.append(0, batch(0, b"a", epoch=epoch), epoch),
            port.claim_controller(ONE),
            port.register(ONE, b""),
            port.deregister(ONE, 1),  # type: ignore[arg-type]  # any number will do
            port.members(),
            port.active_controller(),
            port.latest_epoch(),
            port.end(),
            port.read(0),
            port.start_offset(),
            port.snapshot(),
            port.move_snapshot(SnapshotPointer(0, 0, ()), epoch),
            port.trim(0, epoch),
            port.claim_cluster_id("mine", directories_empty=True),
        ):
            with pytest.raises(CoordinationUnavailable):
                await attempt
        assert watch.seconds < 3  # of a session of 6
        await relay.open()
        await log.until(CONNECTED)
        # Nothing of it was kept for later.
        assert await port.members() == {}
        assert await port.latest_epoch() == epoch
        assert await port.end() == 0
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)


async def test_a_lost_session_takes_membership_and_controller_with_it(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with (
        Relay(shared_zookeeper.nodes[0]) as relay,
        connected(relay.connect + chroot, session_timeout_ms=SHORT_MS) as port,
        connected(shared_zookeeper.connect + chroot) as other,
    ):
        epoch = await port.claim_controller(ONE)
        registered = await port.register(ONE, b"here")
        log = SessionLog(port)
        gone = Hints()
        other.watch_members(gone)
        before = gone.count
        await relay.close()
        await log.until(SUSPENDED)

        async def is_gone() -> bool:
            return not await other.members()

        await gone.until(is_gone, since=before)
        assert await other.active_controller() is None
        await relay.open()
        await log.until(LOST, CONNECTED)
        with pytest.raises(ControllerFenced):
            await port.append(0, batch(0, b"a", epoch=epoch), epoch)
        assert await port.register(ONE, b"back") > registered
        assert await port.claim_controller(ONE, deposing=epoch) == epoch + 1
        await port.append(0, batch(0, b"a", epoch=epoch + 1), ControllerEpoch(epoch + 1))


async def test_a_member_that_falls_silent_is_seen_to_go(shared_zookeeper: ZooKeeper, chroot: str) -> None:
    async with (
        Relay(shared_zookeeper.nodes[0]) as relay,
        connected(relay.connect + chroot, session_timeout_ms=SHORT_MS) as silent,
        connected(shared_zookeeper.connect + chroot) as watcher,
    ):
        await silent.register(ONE, b"here")
        await watcher.register(TWO, b"there")
        hints = Hints()
        watcher.watch_members(hints)
        relay.hold(requests=True, answers=True)

        async def is_gone() -> bool:
            return list(await watcher.members()) == [TWO]

        await hints.until(is_gone, since=0)
        log = SessionLog(silent)
        relay.release()
        await log.until(CONNECTED)


async def test_whatever_changed_while_a_watcher_was_away_is_told_when_it_is_back(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with (
        Relay(shared_zookeeper.nodes[0]) as relay,
        connected(relay.connect + chroot) as watcher,
        connected(shared_zookeeper.connect + chroot) as other,
    ):
        members, controller = Hints(), Hints()
        watcher.watch_members(members)
        watcher.watch_controller(controller)
        await members.another()
        log = SessionLog(watcher)
        await relay.close()
        await log.until(SUSPENDED)
        epoch = await other.register(ONE, b"")
        term = await other.claim_controller(ONE)
        before = members.count, controller.count
        await relay.open()

        async def is_seen() -> bool:
            return (await watcher.members())[ONE].epoch == epoch

        async def is_active_controller() -> bool:
            return await watcher.active_controller() == (ONE, term)

        await members.until(is_seen, since=before[0])
        await controller.until(is_active_controller, since=before[1])
        # And the watches are set again.
        before = members.count, controller.count
        await other.deregister(ONE, epoch)
        next_term = await other.claim_controller(ONE)

        async def is_gone() -> bool:
            return not await watcher.members()

        async def is_replaced() -> bool:
            return await watcher.active_controller() == (ONE, next_term)

        await members.until(is_gone, since=before[0])
        await controller.until(is_replaced, since=before[1])


async def test_a_paused_server_suspends_and_a_restarted_one_has_forgotten_nothing(
    own_zookeeper: OwnZooKeeper,
) -> None:
    zookeeper = own_zookeeper(1)
    (node,) = zookeeper.nodes
    async with connected(zookeeper.connect, session_timeout_ms=3_000) as port:
        log = SessionLog(port)
        epoch = await port.claim_controller(ONE)
        registered = await port.register(ONE, b"here")
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)
        node.pause()
        await log.until(SUSPENDED)
        node.resume()
        await log.until(CONNECTED)
        before = len(log.states)
        await asyncio.to_thread(node.restart)
        await log.until(CONNECTED, since=before)  # a slow start loses the session
        assert [found.sequence for found in await port.read(0)] == [0]
        assert await port.latest_epoch() == epoch
        if LOST not in log.states:
            assert (await port.members())[ONE].epoch == registered
            await port.append(1, batch(1, b"b", epoch=epoch), epoch)


async def test_closing_takes_no_longer_when_the_server_is_silent(
    shared_zookeeper: ZooKeeper, chroot: str
) -> None:
    async with Relay(shared_zookeeper.nodes[0]) as relay, connected(relay.connect + chroot) as port:
        relay.hold(requests=True, answers=True)
        watch = Stopwatch()
        await port.close()
        assert watch.seconds < 5
        assert port.session is LOST
        with pytest.raises(CoordinationUnavailable):
            await port.members()


async def test_a_closed_session_leaves_no_thread(shared_zookeeper: ZooKeeper, chroot: str) -> None:
    before = set(threading.enumerate())
    async with connected(shared_zookeeper.connect + chroot) as port:
        started = set(threading.enumerate()) - before
        await port.register(ONE, b"")
    assert started
    assert all(thread.daemon for thread in started)
    deadline = time.monotonic() + 60
    while any(thread.is_alive() for thread in started) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert not any(thread.is_alive() for thread in started)


async def test_a_server_that_is_not_there_is_named() -> None:
    (nobody,) = free_ports(HOST, 1)
    port = ZooKeeperCoordination(
        ZooKeeperAddress(((HOST, nobody),), ""), session_timeout_ms=6_000, connection_timeout_ms=300
    )
    watch = Stopwatch()
    with pytest.raises(
        CoordinationUnavailable, match=f"{HOST}:{nobody} within 300 ms.*check zookeeper.connect"
    ):
        await port.start()
    assert watch.seconds < 5


async def test_a_place_that_apache_kafka_uses_is_left_alone(shared_zookeeper: ZooKeeper, chroot: str) -> None:
    async with connected(f"{shared_zookeeper.connect}{chroot}/elsewhere") as port:
        for name in ("/brokers", "/brokers/topics"):
            await port._session.change(create(chroot + name, b""))
        address = parse_zookeeper_connect(shared_zookeeper.connect + chroot)
        assert address is not None
        with pytest.raises(ConfigError, match="chroot of its own"):
            await ZooKeeperCoordination(address).start()
        (names,) = await port._session.ask(children(chroot))
        assert sorted(names) == ["brokers", "elsewhere"], "nothing was made"

"""The selector that calls data connections itself must never keep the event loop from its own work."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from headrace.network.event_loop import BrokerEventLoop


@pytest.fixture
def loop() -> Iterator[BrokerEventLoop]:
    made = BrokerEventLoop()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


Pair = tuple[socket.socket, socket.socket]


def test_a_future_that_a_direct_callback_completes_wakes_its_task(loop: BrokerEventLoop, pair: Pair) -> None:
    ours, theirs = pair

    async def wait_for_bytes() -> bytes:
        arrived: asyncio.Future[bytes] = loop.create_future()
        loop.direct.add_reader(ours.fileno(), lambda: arrived.set_result(ours.recv(10)))
        theirs.send(b"a")
        return await asyncio.wait_for(arrived, 5)

    assert loop.run_until_complete(wait_for_bytes()) == b"a"


def test_a_timer_is_called_though_a_direct_callback_is_always_due(loop: BrokerEventLoop, pair: Pair) -> None:
    ours, theirs = pair
    calls = 0

    def leave_it_unread() -> None:
        nonlocal calls
        calls += 1

    theirs.send(b"a")
    loop.direct.add_reader(ours.fileno(), leave_it_unread)
    loop.run_until_complete(asyncio.wait_for(asyncio.sleep(0.02), 5))
    assert calls > 1


def test_a_timer_that_a_direct_callback_sets_is_called(loop: BrokerEventLoop, pair: Pair) -> None:
    ours, theirs = pair

    def set_a_timer() -> None:
        ours.recv(10)
        loop.call_later(0.01, loop.stop)

    theirs.send(b"a")
    loop.direct.add_reader(ours.fileno(), set_a_timer)
    loop.run_forever()


def test_a_direct_callback_can_stop_the_loop(loop: BrokerEventLoop, pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"a")
    loop.direct.add_reader(ours.fileno(), loop.stop)
    loop.run_forever()


def test_another_thread_can_wake_the_loop(loop: BrokerEventLoop, pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"a")
    loop.direct.add_reader(ours.fileno(), lambda: None)

    async def ask_a_thread() -> int:
        return await asyncio.wait_for(loop.run_in_executor(None, lambda: 7), 5)

    assert loop.run_until_complete(ask_a_thread()) == 7
    loop.run_until_complete(loop.shutdown_default_executor())


def test_small_requests_do_not_cost_a_turn_of_the_loop(loop: BrokerEventLoop, pair: Pair) -> None:
    ours, theirs = pair
    selects = 0
    answered = 0
    original = loop.direct.select

    def answer() -> None:
        nonlocal answered
        ours.recv(10)
        answered += 1
        if answered < 100:
            theirs.send(b"a")
        else:
            loop.stop()

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(loop.direct, name)

        def select(self, timeout: float | None = None) -> object:
            nonlocal selects
            selects += 1
            return original(timeout)

    loop._selector = Counting()  # type: ignore[attr-defined]  # the only place to count the turns
    theirs.send(b"a")
    loop.direct.add_reader(ours.fileno(), answer)
    loop.run_forever()
    assert answered == 100
    assert selects < 5


def test_what_is_deferred_is_done_after_all_that_has_arrived(loop: BrokerEventLoop, pair: Pair) -> None:
    """Two connections have something to say at once: what the first defers waits for the second."""
    ours, theirs = pair
    order: list[str] = []
    other, peer = socket.socketpair()
    with other, peer:

        def served(sock: socket.socket) -> None:
            sock.recv(10)
            order.append("served")
            loop.direct.defer(lambda: order.append("deferred"))
            if len(order) == 2:
                loop.direct.defer(loop.stop)

        loop.direct.add_reader(ours.fileno(), lambda: served(ours))
        loop.direct.add_reader(other.fileno(), lambda: served(other))
        theirs.send(b"a")
        peer.send(b"b")
        loop.run_forever()
        loop.direct.remove_reader(ours.fileno())
        loop.direct.remove_reader(other.fileno())
    assert order == ["served", "served", "deferred", "deferred"]


def test_what_a_task_defers_is_done_before_anything_is_waited_for(loop: BrokerEventLoop) -> None:
    async def defer() -> bool:
        done = loop.create_future()
        loop.direct.defer(lambda: done.set_result(True))
        return bool(await asyncio.wait_for(done, 5))

    assert loop.run_until_complete(defer())

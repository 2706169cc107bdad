"""The link between brokers that the selector calls: frames in pieces, answers followed up, and every end."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from headrace.core.ports_network import PeerRefused, PeerReset
from headrace.network.direct_dialer import DirectDialer
from headrace.network.direct_link import DirectLink
from headrace.network.event_loop import BrokerEventLoop
from tests.ports import own_port

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Scenario = Callable[[DirectLink], Coroutine[Any, Any, None]]


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def next_frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(frame(await next_frame(reader)))


async def with_link(scenario: Scenario, serve: Serve = echo) -> None:
    writers = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    link = await DirectDialer().dial("127.0.0.1", port, timeout=5)
    try:
        async with asyncio.timeout(20):
            await scenario(link)
    finally:
        link.close()
        for writer in writers:
            writer.transport.abort()
        server.close()  # not wait_closed(): from Python 3.12 on it waits for connections that came late


@pytest.fixture(params=[BrokerEventLoop, asyncio.SelectorEventLoop])
def run(request: pytest.FixtureRequest) -> Callable[..., None]:
    """On the broker's own loop and on any other."""

    def run_it(scenario: Scenario, serve: Serve = echo) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(with_link(scenario, serve))

    return run_it


Run = Callable[..., None]


def test_answers_come_in_order_and_are_the_callers(run: Run) -> None:
    bodies = [os.urandom(size) for size in (1, 70_000, 3, 300_000, 65_532, 65_533, 2_000_000, 9)]

    async def scenario(link: DirectLink) -> None:
        answers = [link.send(body) for body in bodies]
        assert [bytes(await answer) for answer in answers] == bodies

    run(scenario)


def test_a_frame_that_arrives_byte_by_byte(run: Run) -> None:
    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in frame(await next_frame(reader)) * 2:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)

    async def scenario(link: DirectLink) -> None:
        first, second = link.send(b"hello"), link.send(b"is not looked at")
        assert bytes(await first) == bytes(await second) == b"hello"

    run(scenario, slowly)


@pytest.mark.parametrize("size", [10, 500_000])
def test_answers_are_followed_up_until_there_is_nothing_to_ask(run: Run, size: int) -> None:
    seen: list[bytes] = []

    def follow_up(answer: memoryview) -> bytes | None:
        seen.append(bytes(answer))
        return os.urandom(size) if len(seen) < 5 else None

    async def scenario(link: DirectLink) -> None:
        last = await link.exchange(b"first" + bytes(size), follow_up)
        kept = bytes(last)
        assert seen[-1] == kept
        await link.send(os.urandom(size))
        assert bytes(last) == kept, "the last answer is the caller's"
        assert len(seen) == 5

    run(scenario)


def test_a_request_that_is_sent_meanwhile_gets_its_own_answer(run: Run) -> None:
    others: list[asyncio.Future[memoryview]] = []

    async def scenario(link: DirectLink) -> None:
        def follow_up(answer: memoryview) -> bytes | None:
            if len(others) == 3:
                return None
            assert bytes(answer) == b"fetch %d" % len(others)
            others.append(link.send(b"other %d" % len(others)))
            return b"fetch %d" % len(others)

        assert bytes(await link.exchange(b"fetch 0", follow_up)) == b"fetch 3"
        assert [bytes(await other) for other in others] == [b"other 0", b"other 1", b"other 2"]

    run(scenario)


def test_a_mistake_in_a_follow_up_is_told_to_whoever_awaits(run: Run) -> None:
    def follow_up(answer: memoryview) -> bytes | None:
        raise ZeroDivisionError

    async def scenario(link: DirectLink) -> None:
        with pytest.raises(ZeroDivisionError):
            await link.exchange(b"a", follow_up)
        assert bytes(await link.send(b"b")) == b"b"

    run(scenario)


def test_a_follow_up_may_close_the_link(run: Run) -> None:
    async def scenario(link: DirectLink) -> None:
        def follow_up(answer: memoryview) -> bytes | None:
            link.close()
            return b"too late"

        with pytest.raises(PeerReset):
            await link.exchange(b"a", follow_up)
        assert not link.is_open

    run(scenario)


def test_whoever_waits_is_told_when_the_link_is_closed(run: Run) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def scenario(link: DirectLink) -> None:
        answer = link.send(b"a")
        link.close()
        with pytest.raises(PeerReset):
            await answer
        with pytest.raises(PeerReset):
            link.send(b"b")

    run(scenario, silent)


def test_whoever_waits_is_told_when_the_peer_leaves(run: Run) -> None:
    async def leaving(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_frame(reader)
        writer.write(frame(b"half an answer")[:9])
        writer.close()

    async def scenario(link: DirectLink) -> None:
        with pytest.raises(PeerReset):
            await link.send(b"a")
        assert not link.is_open

    run(scenario, leaving)


def test_whoever_stops_waiting_gives_up_the_link(run: Run) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def scenario(link: DirectLink) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(link.send(b"a"), 0.01)
        assert not link.is_open

    run(scenario, silent)


@pytest.mark.parametrize("nonsense", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n"])
def test_nonsense_breaks_the_link(run: Run, nonsense: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await next_frame(reader)
        writer.write(nonsense)
        await reader.read()

    async def scenario(link: DirectLink) -> None:
        with pytest.raises(PeerReset):
            await link.send(b"a")

    run(scenario, talk)


def test_an_answer_that_nobody_awaits_breaks_the_link(run: Run) -> None:
    async def eager(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(await next_frame(reader)) * 2)
        await reader.read()

    async def scenario(link: DirectLink) -> None:
        await link.send(b"a")
        while link.is_open:
            await asyncio.sleep(0.001)

    run(scenario, eager)


def test_a_request_larger_than_the_socket_takes_at_once(run: Run) -> None:
    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(frame(struct.pack(">i", len(await next_frame(reader)))))
        writer.write(frame(await next_frame(reader)))

    async def scenario(link: DirectLink) -> None:
        large, small = link.send(bytes(20_000_000)), link.send(b"behind it")
        assert bytes(await large) == struct.pack(">i", 20_000_000)
        assert bytes(await small) == b"behind it"

    run(scenario, late)


def test_nobody_listens() -> None:
    async def dial() -> None:
        with pytest.raises(PeerRefused):
            await DirectDialer().dial("127.0.0.1", own_port(), timeout=5)

    asyncio.run(dial())

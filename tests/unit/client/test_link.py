"""Links over real sockets, on asyncio's own event loop and on the broker's."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from headrace.client.link import MAX_FRAME_BYTES, TcpDialer, TcpLink
from headrace.core.ports_network import PeerRefused, PeerReset, PeerSilent
from headrace.network.event_loop import BrokerEventLoop
from tests.ports import own_port

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Scenario = Callable[[TcpLink], Coroutine[Any, Any, None]]


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        try:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            writer.write(frame(await reader.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            return


class Peer:
    """A server that does what a test tells it to with each connection."""

    def __init__(self, serve: Serve = echo) -> None:
        self._serve = serve
        self._writers: list[asyncio.StreamWriter] = []
        self._connected = asyncio.Event()

    async def __aenter__(self) -> TcpLink:
        self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.link = await TcpDialer().dial("127.0.0.1", self.port, timeout=5)
        await self._connected.wait()  # else its end here would be closed by nobody
        return self.link

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._connected.set()
        await self._serve(reader, writer)

    async def __aexit__(self, *_: object) -> None:
        self.link.close()
        await self.link.wait_closed()
        for writer in self._writers:
            writer.close()
        self._server.close()
        await self._server.wait_closed()


@pytest.fixture(params=[asyncio.SelectorEventLoop, BrokerEventLoop])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs on each kind of loop."""

    def run_one(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(main, 20))

    return run_one


Run = Callable[[Coroutine[Any, Any, None]], None]


def test_answers_come_in_order_whatever_their_size(run: Run) -> None:
    async def main() -> None:
        async with Peer() as link:
            sizes = [1, 7, 70_000, 3, 65_532, 65_536, 65_537, 2_000_000, 5]
            bodies = [bytes([n]) * size for n, size in enumerate(sizes)]
            answers = await asyncio.gather(*[link.send(body) for body in bodies])
            assert [bytes(answer) for answer in answers] == bodies

    run(main())


def test_an_answer_stays_as_it_was_when_more_arrives(run: Run) -> None:
    async def main() -> None:
        async with Peer() as link:
            first = await link.send(b"first")
            for _ in range(3):
                await link.send(b"x" * 60_000)
            assert bytes(first) == b"first"

    run(main())


def test_frames_that_arrive_byte_by_byte(run: Run) -> None:
    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4 + 1 + 4 + 1)
        for byte in frame(b"one") + frame(b"second"):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.001)

    async def main() -> None:
        async with Peer(dribble) as link:
            answers = await asyncio.gather(link.send(b"a"), link.send(memoryview(b"b")))
            assert [bytes(answer) for answer in answers] == [b"one", b"second"]

    run(main())


def test_a_peer_that_closes_fails_all_who_wait(run: Run) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        writer.write(frame(b"one") + struct.pack(">i", 100) + b"cut off")
        await writer.drain()
        writer.close()

    async def main() -> None:
        async with Peer(hang_up) as link:
            one, two, three = link.send(b"a"), link.send(b"b"), link.send(b"c")
            assert bytes(await one) == b"one"
            for lost in (two, three):
                with pytest.raises(PeerReset, match="closed the connection"):
                    await lost
            assert not link.is_open
            with pytest.raises(PeerReset):
                link.send(b"d")

    run(main())


def test_a_reset_is_a_reset(run: Run) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def main() -> None:
        async with Peer(reset) as link:
            with pytest.raises(PeerReset):
                await link.send(b"a")

    run(main())


async def test_closing_tells_who_waits() -> None:
    async with Peer(lambda reader, writer: asyncio.sleep(0)) as link:
        waiting = link.send(b"a")
        link.close()
        assert not link.is_open
        with pytest.raises(PeerReset, match="is closed"):
            await waiting


async def test_who_stops_waiting_gives_up_the_link() -> None:
    async with Peer(lambda reader, writer: asyncio.sleep(0)) as link:
        behind = link.send(b"a"), link.send(b"b")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await behind[0]
        assert not link.is_open
        with pytest.raises(PeerReset):
            await behind[1]


@pytest.mark.parametrize(
    "sent", [struct.pack(">i", 0), struct.pack(">i", -1), struct.pack(">i", MAX_FRAME_BYTES + 1), frame(b"?")]
)
async def test_what_is_no_answer_ends_the_link(sent: bytes) -> None:
    """A length that cannot be, or a frame that nobody asked for."""

    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()

    async with Peer(nonsense) as link:
        while link.is_open:
            await asyncio.sleep(0.001)
        with pytest.raises(PeerReset, match=r"frame of|nobody awaits"):
            link.send(b"a")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_nobody_listens(run: Run, host: str) -> None:
    async def main() -> None:
        with pytest.raises(PeerRefused):
            await TcpDialer().dial(host, own_port(), timeout=5)

    run(main())


async def test_a_connection_to_oneself_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may choose, for our end, the port that we dial; then nobody else can ever listen there."""
    port = own_port()
    prepare = TcpDialer._prepare

    def bound(dialer: TcpDialer, sock: socket.socket) -> None:
        prepare(dialer, sock)
        sock.bind(("127.0.0.1", port))

    monkeypatch.setattr(TcpDialer, "_prepare", bound)
    with pytest.raises(PeerRefused):
        await TcpDialer().dial("127.0.0.1", port, timeout=5)


async def test_nobody_answers_in_time() -> None:
    links = []

    async def fill(port: int) -> None:
        for _ in range(5):  # the backlog is full after the first one or two
            links.append(await TcpDialer().dial("127.0.0.1", port, timeout=0.1))

    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with pytest.raises(PeerSilent, match=r"no answer in 0\.1 s"):
            await fill(full.getsockname()[1])
    for link in links:
        link.close()
        await link.wait_closed()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ECONNREFUSED, PeerRefused),
        (errno.EHOSTUNREACH, PeerSilent),
        (errno.ENETUNREACH, PeerSilent),
        (errno.ETIMEDOUT, PeerSilent),
        (errno.ECONNRESET, PeerReset),
    ],
)
async def test_each_error_of_connecting_means_what_it_says(
    monkeypatch: pytest.MonkeyPatch, code: int, expected: type[Exception]
) -> None:
    async def fail(sock: socket.socket, address: object) -> None:
        raise OSError(code, "as the kernel says it")

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", fail)
    with pytest.raises(expected) as caught:
        await TcpDialer().dial("127.0.0.1", 1, timeout=5)
    assert type(caught.value) is expected


async def test_several_addresses_must_all_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is silent at one address may be alive there."""
    loop = asyncio.get_running_loop()
    codes = iter((errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ECONNREFUSED))

    async def fail(sock: socket.socket, address: object) -> None:
        raise OSError(next(codes), "as the kernel says it")

    async def resolve(host: str, port: int, **rest: object) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, 0, 0, "", ("127.0.0.1", port))] * 3

    monkeypatch.setattr(loop, "sock_connect", fail)
    monkeypatch.setattr(loop, "getaddrinfo", resolve)
    with pytest.raises(PeerSilent):
        await TcpDialer().dial("several.example", 1, timeout=5)


async def test_a_host_that_went_away_is_silent() -> None:
    """What keepalive and retransmission end in is silence, not a reset."""
    async with Peer(lambda reader, writer: asyncio.sleep(0)) as link:
        waiting = link.send(b"a")
        assert link._transport is not None
        link._transport._fatal_error(OSError(errno.EHOSTUNREACH, "No route to host"))  # type: ignore[attr-defined]  # as the kernel reports it
        with pytest.raises(PeerSilent, match="No route"):
            await waiting


async def test_delays_of_small_writes_are_off() -> None:
    async with Peer() as link:
        assert link._transport is not None
        sock = link._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


async def test_requests_without_an_answer_are_held_back_by_a_slow_peer() -> None:
    go = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go.wait()
        while await reader.read(1 << 20):
            pass

    async with Peer(slow) as link:
        link.send_only(bytes(32 << 20))
        drained = asyncio.ensure_future(link.drain())
        await asyncio.sleep(0.05)
        assert not drained.done()
        go.set()
        await drained

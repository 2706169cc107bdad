"""SASL over a real socket: what is served before a peer has authenticated, and what it is told."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.security.authentication import SaslListener
from headrace.broker.security.security import Security
from headrace.core.completion import Completion
from headrace.core.timers import TimerQueue
from headrace.metrics.registry import BrokerMetrics
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint
from headrace.network.response import Response
from headrace.protocol.headers import frame_request
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from headrace.security.mechanism import Authenticated, Step
from headrace.security.plain import PlainExchange
from headrace.security.principal import user

GOOD = b"\0alice\0secret"
DELAY_MS = 30


class Slow:
    """PLAIN whose tokens need something first. A password that begins with `token` is a delegation token."""

    def __init__(self, preparations: list[Completion[None]]) -> None:
        self._preparations = preparations

    def prepare(self, token: bytes) -> Completion[None]:
        self._preparations.append(Completion())
        return self._preparations[-1]

    def step(self, token: bytes) -> Step:
        done = PlainExchange({"alice": token.rpartition(b"\0")[2] or b"x"}).step(token).authenticated
        assert done is not None
        if b"broken" in token:
            raise RuntimeError("ours")
        return Step(b"", Authenticated(done.principal, 5_000, "id-1" if b"\0token" in token else None))


class Server:
    def __init__(self, reauth_ms: int, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self.now_ms = 1_000_000
        self.events: list[str] = []
        self.served: list[str] = []
        self.preparations: list[Completion[None]] = []
        self.connections: list[Connection] = []
        runtime = SimpleNamespace(
            config=SimpleNamespace(
                headrace_authentication_timeout_ms=timeout_ms,
                connection_failed_authentication_delay_ms=DELAY_MS,
            ),
            timers=TimerQueue(loop),
            metrics=BrokerMetrics(),
            monotonic_ms=lambda: self.now_ms,
            peer_log=SimpleNamespace(warning=lambda event, *_, **__: self.events.append(event)),
        )
        unchecked: Any = runtime
        self.runtime: Any = unchecked
        self.threads = ThreadPoolExecutor(1)
        self.endpoint = Endpoint(loop, self.threads, max_frame_bytes=1_000_000)
        security = Security("SASL")
        self.clients: list[Client] = []
        properties: Any = SimpleNamespace(max_receive_bytes=65536, reauth_ms={"PLAIN": reauth_ms})
        listener = SaslListener(
            unchecked,
            security,
            self._serve,
            {
                "PLAIN": lambda: PlainExchange({"alice": b"secret"}),
                "SLOW": lambda: Slow(self.preparations),
            },
            properties,
        )
        security.authenticate["SASL"] = listener.begin
        self.endpoint.on_connected = security.on_connected
        self.port = self.endpoint.bind("127.0.0.1", 0, "SASL")
        self.endpoint.start_accepting(self._serve)

    def _serve(self, connection: Connection, _frame: memoryview) -> Response:
        self.served.append(str(connection.principal))
        self.connections.append(connection)
        return [struct.pack(">i", 2) + b"ok"]

    def close(self) -> None:
        for client in self.clients:
            client.abort()
        self.endpoint.close()
        self.threads.shutdown()


@pytest.fixture
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    server = Server(*getattr(request, "param", (0, 10_000)))
    yield server
    server.close()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def of(cls, server: Server) -> Client:
        client = cls(*await asyncio.open_connection("127.0.0.1", server.port))
        server.clients.append(client)
        return client

    def abort(self) -> None:
        self._writer.transport.abort()

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def send(self, message: Message, version: int) -> None:
        self._writer.write(frame_request(message, version, 7, "test"))

    async def ask(self, message: Message, version: int) -> bytes:
        self.send(message, version)
        return await self.frame()

    async def frame(self) -> bytes:
        """b"" when the connection is closed."""
        try:
            size = struct.unpack(">i", await self._reader.readexactly(4))[0]
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def raw(self, token: bytes) -> bytes:
        self._writer.write(struct.pack(">i", len(token)) + token)
        return await self.frame()

    async def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
        answer = await self.ask(SaslHandshakeRequest(mechanism=mechanism), version)
        return SaslHandshakeResponse.from_bytes(answer[4:], version)

    async def authenticate(self, token: bytes = GOOD, version: int = 1) -> SaslAuthenticateResponse:
        answer = await self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        return SaslAuthenticateResponse.from_bytes(answer[4:], version)


async def test_who_has_authenticated_is_served_as_who_it_is(server: Server) -> None:
    client = await Client.of(server)
    assert (await client.handshake()).error_code == 0
    assert (await client.authenticate()).error_code == 0
    assert await client.ask(MetadataRequest(topics=None), 4) == b"ok"
    assert server.served == [str(user("alice"))]
    assert server.runtime.metrics.authentication.succeeded == 1


async def test_before_that_only_the_versions_are_told(server: Server) -> None:
    client = await Client.of(server)
    assert await client.ask(ApiVersionsRequest(), 0) == b"ok"
    assert await client.ask(MetadataRequest(topics=None), 4) == b""
    assert server.served == ["User:ANONYMOUS"]


async def test_a_wrong_password_is_told_after_a_while_and_the_connection_ends(server: Server) -> None:
    client = await Client.of(server)
    await client.handshake()
    began = asyncio.get_running_loop().time()
    answer = await client.authenticate(b"\0alice\0wrong")
    assert answer.error_code == 58
    assert asyncio.get_running_loop().time() - began >= DELAY_MS / 1000
    assert await client.frame() == b""
    assert server.runtime.metrics.authentication.failed == 1


async def test_an_unknown_user_cannot_be_told_from_a_wrong_password(server: Server) -> None:
    texts = []
    for token in (b"\0alice\0wrong", b"\0nobody\0secret"):
        client = await Client.of(server)
        await client.handshake()
        texts.append((await client.authenticate(token)).error_message)
    assert texts[0] == texts[1]


async def test_an_unknown_mechanism_is_told_what_there_is(server: Server) -> None:
    client = await Client.of(server)
    answer = await client.handshake("GSSAPI")
    assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN", "SLOW"])
    assert await client.frame() == b""


async def test_old_clients_send_tokens_without_a_header(server: Server) -> None:
    client = await Client.of(server)
    assert (await client.handshake(version=0)).error_code == 0
    assert await client.raw(GOOD) == b""
    assert await client.ask(MetadataRequest(topics=None), 4) == b"ok"
    other = await Client.of(server)
    await other.handshake(version=0)
    assert await other.raw(b"\0alice\0wrong") == b""
    assert await other.frame() == b""


async def test_a_large_frame_of_a_stranger_is_not_taken(server: Server) -> None:
    """Its length is enough: nothing is kept of what may follow. Whoever is known may send more."""
    client = await Client.of(server)
    client.write(struct.pack(">i", 65537))
    async with asyncio.timeout(20):
        assert await client.frame() == b""
    assert server.events == [], "and not because its time was over"
    assert not server.served
    known = await Client.of(server)
    await known.handshake()
    assert (await known.authenticate()).error_code == 0
    assert await known.raw(bytes(65537)) == b"ok"


@pytest.mark.parametrize("server", [(0, 50)], indirect=True)
async def test_who_does_not_authenticate_in_time_is_hung_up_on(server: Server) -> None:
    client = await Client.of(server)
    await client.handshake()
    async with asyncio.timeout(20):
        assert await client.frame() == b""
    assert "authentication not finished in time" in server.events


@pytest.mark.parametrize("server", [(5_000, 10_000)], indirect=True)
async def test_a_session_is_renewed_in_place_and_ends_if_it_is_not(server: Server) -> None:
    client = await Client.of(server)
    await client.handshake()
    assert (await client.authenticate()).session_lifetime_ms == 5_000
    server.now_ms += 4_000
    assert (await client.handshake()).error_code == 0
    assert (await client.authenticate()).session_lifetime_ms == 5_000
    server.now_ms += 4_000
    assert await client.ask(MetadataRequest(topics=None), 4) == b"ok"
    server.now_ms += 2_000
    assert await client.ask(MetadataRequest(topics=None), 4) == b""
    figures = server.runtime.metrics.authentication
    assert (figures.succeeded, figures.reauthenticated, figures.expired) == (1, 1, 1)


async def prepared(server: Server, number: int) -> None:
    """Until that many tokens wait; then the last is let go on."""
    while len(server.preparations) < number:
        await asyncio.sleep(0.001)
    server.preparations[-1].complete(None)


async def test_a_token_waits_for_what_it_needs_and_nothing_overtakes_it(server: Server) -> None:
    client = await Client.of(server)
    await client.handshake("SLOW")
    answer = asyncio.ensure_future(client.authenticate())
    while not server.preparations:
        await asyncio.sleep(0.001)
    client.send(MetadataRequest(topics=None), 4)
    await asyncio.sleep(0.02)
    assert not answer.done()
    assert server.served == []
    server.preparations[0].complete(None)
    assert ((await answer).error_code, (await answer).session_lifetime_ms) == (0, 5_000)
    assert await client.frame() == b"ok"
    assert server.served == [str(user("alice"))]


async def test_a_raw_token_waits_too(server: Server) -> None:
    client = await Client.of(server)
    await client.handshake("SLOW", version=0)
    answer = asyncio.ensure_future(client.raw(GOOD))
    await prepared(server, 1)
    assert await answer == b""
    assert await client.ask(MetadataRequest(topics=None), 4) == b"ok"


async def test_who_fails_after_the_wait_is_told_and_closed(server: Server) -> None:
    client = await Client.of(server)
    await client.handshake("SLOW")
    answer = asyncio.ensure_future(client.authenticate(b"\0bob\0secret"))
    await prepared(server, 1)
    assert (await answer).error_code == 58
    assert await client.frame() == b""


async def test_whoever_leaves_meanwhile_is_not_missed(server: Server) -> None:
    client = await Client.of(server)
    await client.handshake("SLOW")
    client.send(SaslAuthenticateRequest(auth_bytes=GOOD), 1)
    while not server.preparations:
        await asyncio.sleep(0.001)
    client.abort()
    await asyncio.sleep(0.02)
    server.preparations[0].complete(None)
    assert server.runtime.metrics.authentication.succeeded == 0


async def test_a_mistake_of_ours_after_the_wait_closes_the_connection(server: Server) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    client = await Client.of(server)
    await client.handshake("SLOW")
    answer = asyncio.ensure_future(client.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0broken"), 1))
    await prepared(server, 1)
    assert await asyncio.wait_for(answer, 5) == b"", "long before the time to authenticate is over"
    assert len(reported) == 1


async def test_a_session_that_goes_on_with_a_delegation_token_is_one_of_a_token(server: Server) -> None:
    """Otherwise whoever holds a password could leave behind a session by token that creates tokens."""
    client = await Client.of(server)
    came_by_token = []
    for number, token in enumerate((GOOD, b"\0alice\0token", GOOD), start=1):
        await client.handshake("SLOW")
        answer = asyncio.ensure_future(client.authenticate(token))
        await prepared(server, number)
        assert (await answer).error_code == 0
        assert await client.ask(MetadataRequest(topics=None), 4) == b"ok"
        came_by_token.append(server.connections[-1].came_by_token)
        server.now_ms += 2_000
    assert came_by_token == [False, True, False]

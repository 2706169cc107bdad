"""Links of clients and of brokers over TLS and SASL, to a real endpoint."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.security.principals import principal_by
from headrace.client.credentials import Credentials
from headrace.client.link import TcpDialer
from headrace.client.link_security import SecureLinks
from headrace.config.secret import Secret
from headrace.config.tls_properties import KeyStore, TlsProperties, TrustStore
from headrace.core.ports_network import Link, PeerReset, PeerSilent, PeerUnavailable, PeerUntrusted
from headrace.network.connection import Connection
from headrace.network.direct_dialer import DirectDialer
from headrace.network.event_loop import BrokerEventLoop
from headrace.network.listener import Endpoint
from headrace.network.response import Response
from headrace.network.tls import TlsSettings
from headrace.tls.contexts import client_context, server_context
from headrace.tls.stores import read_identity, read_trusted
from tests.certificates import Authority

Dialers = type[TcpDialer] | type[DirectDialer]
BOTH = pytest.mark.parametrize("dialer", [TcpDialer, DirectDialer])
ECHO, REPEAT = 0, 1


def answer(_connection: Connection, frame: memoryview) -> Response:
    """A frame is echoed, or answered with as many bytes as it says."""
    if frame[0] == REPEAT:
        size = int.from_bytes(frame[1:5], "big")
        body = bytes(range(256)) * (size // 256 + 1)
        return [len(body[:size]).to_bytes(4, "big") + body[:size]]
    return [len(frame).to_bytes(4, "big") + bytes(frame)]


class Bench:
    def __init__(self, tmp_path: Path) -> None:
        self.authority = Authority(tmp_path)
        self.broker = self.authority.issue("broker")
        self.failures: list[str] = []
        self.principals: list[str] = []

    def properties(self, identity: Path | None, client_auth: str = "none") -> TlsProperties:
        return TlsProperties(
            KeyStore("PEM", None if identity is None else str(identity), None, None, None, None),
            TrustStore("PEM", str(self.authority.trust_store), None, None),
            client_auth,
            ("TLSv1.2", "TLSv1.3"),
            (),
            True,
            "RULE:^CN=([^,]*),.*$/$1/,DEFAULT",
            False,
            False,
        )

    def client(self, identity: Path | None = None) -> SecureLinks:
        return SecureLinks(client_context(self.properties(identity)), None)

    def run(
        self,
        scenario: Callable[[int], Awaitable[None]],
        *,
        client_auth: str = "none",
        handler: Callable[[Connection, memoryview], Any] = answer,
        has_tls: bool = True,
    ) -> None:
        async def whole() -> None:
            loop = asyncio.get_running_loop()
            with ThreadPoolExecutor(1) as threads:
                endpoint = Endpoint(
                    loop,
                    threads,
                    max_frame_bytes=1 << 24,
                    on_failed_handshake=lambda _host, _listener, reason: self.failures.append(reason),
                )
                if has_tls:
                    given = self.properties(self.broker, client_auth)
                    context = server_context(
                        given, read_identity(given.key_store), read_trusted(given.trust_store)
                    )
                    endpoint.tls["SSL"] = TlsSettings(
                        context, self._noticing(principal_by(given.mapping_rules))
                    )
                port = endpoint.bind("127.0.0.1", 0, "SSL")
                endpoint.start_accepting(handler)
                try:
                    async with asyncio.timeout(30):
                        await scenario(port)
                finally:
                    endpoint.close()

        with asyncio.Runner(loop_factory=BrokerEventLoop) as runner:
            runner.run(whole())

    def _noticing(self, principal_of: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def noticing(sock: Any) -> Any:
            principal = principal_of(sock)
            self.principals.append(str(principal))
            return principal

        return noticing


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def dial(dialer: Dialers, port: int, security: SecureLinks | None, timeout: float = 10) -> Link:
    return await dialer(security=security).dial("127.0.0.1", port, timeout=timeout)


@asynccontextmanager
async def serving(content: bytes) -> AsyncIterator[int]:
    """Somebody who says the same to everybody, and nothing more."""
    writers: list[asyncio.StreamWriter] = []

    def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(content)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        for writer in writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def ask(dialer: Dialers, port: int, security: SecureLinks | None) -> None:
    """In TLS 1.3 the client is done before the server has looked at its certificate."""
    link = await dial(dialer, port, security)
    await link.send(b"\0" * 40)


@BOTH
def test_questions_are_answered_small_and_large_and_many_at_once(bench: Bench, dialer: Dialers) -> None:
    async def scenario(port: int) -> None:
        link = await dial(dialer, port, bench.client())
        assert bytes(await link.send(b"\0hello")) == b"\0hello"
        sizes = [1, 16_384, 65_536, 70_000, 1_000_000, 3_000_000]
        answers = [link.send(bytes([REPEAT]) + size.to_bytes(4, "big")) for size in sizes]
        for size, awaited in zip(sizes, answers, strict=True):
            body = await awaited
            assert len(body) == size
            assert bytes(body) == (bytes(range(256)) * (size // 256 + 1))[:size]
        small = [link.send(b"\0" + bytes(size)) for size in range(300)]
        assert [len(await awaited) for awaited in small] == [size + 1 for size in range(300)]
        large = b"\0" + b"x" * 5_000_000  # more than sockets hold, in both directions
        assert hashlib.sha256(await link.send(large)).digest() == hashlib.sha256(large).digest()
        link.close()

    bench.run(scenario)
    assert bench.principals == ["User:ANONYMOUS"]
    assert bench.failures == []


@BOTH
def test_a_broker_knows_its_peer_by_the_certificate(bench: Bench, dialer: Dialers) -> None:
    async def scenario(port: int) -> None:
        link = await dial(dialer, port, bench.client(bench.authority.issue("alice")))
        assert bytes(await link.send(b"\0x")) == b"\0x"
        link.close()

    bench.run(scenario, client_auth="required")
    assert bench.principals == ["User:alice"]


@BOTH
def test_who_shows_no_certificate_is_told_that_one_is_wanted(bench: Bench, dialer: Dialers) -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(PeerUntrusted, match=r"wants a certificate: set ssl\.keystore\.location"):
            await ask(dialer, port, bench.client())

    bench.run(scenario, client_auth="required")
    assert bench.failures == ["the peer shows no certificate, and ssl.client.auth is required"]


@BOTH
def test_an_expired_certificate_of_a_client_is_said_on_both_sides(bench: Bench, dialer: Dialers) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    expired = bench.authority.issue("alice", expires=past, begins=past - timedelta(days=9))

    async def scenario(port: int) -> None:
        with pytest.raises(PeerUntrusted, match="our certificate has expired: renew it"):
            await ask(dialer, port, bench.client(expired))

    bench.run(scenario, client_auth="required")
    assert bench.failures == ["the peer's certificate is not accepted: certificate has expired"]


@BOTH
def test_an_expired_certificate_of_a_broker_is_said(bench: Bench, dialer: Dialers) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    bench.broker = bench.authority.issue("old", expires=past, begins=past - timedelta(days=9))

    async def scenario(port: int) -> None:
        with pytest.raises(PeerUntrusted, match="its certificate has expired: renew it"):
            await dial(dialer, port, bench.client())
        while dialer is DirectDialer and not bench.failures:  # asyncio hangs up without an alert
            await asyncio.sleep(0.01)

    bench.run(scenario)
    assert bench.failures in ([], ["this broker's certificate has expired: renew it"])


@BOTH
def test_a_broker_of_a_strange_authority_is_not_trusted(
    bench: Bench, dialer: Dialers, tmp_path: Path
) -> None:
    (tmp_path / "strange").mkdir()
    bench.broker = Authority(tmp_path / "strange").issue("broker")

    async def scenario(port: int) -> None:
        with pytest.raises(PeerUntrusted, match=r"not trusted \(.*\): set ssl\.truststore\.location"):
            await dial(dialer, port, bench.client())

    bench.run(scenario)


@BOTH
def test_tls_at_a_listener_without_it(bench: Bench, dialer: Dialers) -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(PeerUntrusted, match=r"does this listener speak TLS|does not speak TLS"):
            await dial(dialer, port, bench.client())

    bench.run(scenario, has_tls=False)


@BOTH
def test_no_tls_at_a_listener_with_it(bench: Bench, dialer: Dialers) -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(PeerReset, match="closed the connection"):
            await ask(dialer, port, None)

    bench.run(scenario)
    assert bench.failures == ["the peer does not speak TLS: set its security.protocol to SSL or SASL_SSL"]


@BOTH
def test_a_peer_that_says_nothing_is_given_up(bench: Bench, dialer: Dialers) -> None:
    async def scenario(_port: int) -> None:
        async with serving(b"") as port:
            with pytest.raises((PeerSilent, PeerUntrusted), match="not done after"):
                await dial(dialer, port, bench.client(), timeout=0.2)

    bench.run(scenario)


@BOTH
def test_a_broker_that_answers_with_an_alert_is_told_apart(bench: Bench, dialer: Dialers) -> None:
    """So Apache Kafka answers a request without TLS."""

    async def scenario(_port: int) -> None:
        async with serving(b"\x15\x03\x03\x00\x02\x02\x50") as port:
            with pytest.raises(PeerReset, match=r"answers in TLS: set security\.protocol to SSL"):
                await ask(dialer, port, None)

    bench.run(scenario)


@BOTH
def test_a_link_that_is_cut_tells_whoever_waits(bench: Bench, dialer: Dialers) -> None:
    seen: list[Connection] = []

    def never(connection: Connection, _frame: memoryview) -> Any:
        seen.append(connection)
        connection.close()
        return []

    async def scenario(port: int) -> None:
        link = await dial(dialer, port, bench.client())
        with pytest.raises(PeerUnavailable):
            await link.send(b"\0x")
        assert not link.is_open

    bench.run(scenario, handler=never)
    assert seen


def test_what_waits_in_openssl_is_read_without_the_poller(bench: Bench) -> None:
    """Hundreds of answers come with one receive: each is delivered though the kernel has nothing more."""

    async def scenario(port: int) -> None:
        link = await DirectDialer(security=bench.client()).dial("127.0.0.1", port, timeout=10)
        for _ in range(20):
            answers = [link.send(b"\0" + bytes(100)) for _ in range(200)]
            async with asyncio.timeout(5):
                assert [len(await awaited) for awaited in answers] == [101] * 200
        link.close()

    bench.run(scenario)


def test_ciphertext_that_the_socket_did_not_take_leaves_later(bench: Bench) -> None:
    """All of the request is encrypted at once, and most of it waits until the peer reads."""
    frame = b"\0" * 250_000
    may_read = threading.Event()
    given = bench.properties(bench.broker)
    context = server_context(given, read_identity(given.key_store), None)
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listening.bind(("127.0.0.1", 0))
    listening.listen(1)

    def serve() -> int:
        raw, _ = listening.accept()
        raw.settimeout(10)  # a link that forgets its ciphertext fails the test and does not hang it
        with context.wrap_socket(raw, server_side=True) as sock:
            assert may_read.wait(10)
            received = 0
            while received < len(frame) + 4:
                received += len(sock.recv(65_536))
            sock.sendall(b"\0\0\0\x02ok")
            sock.recv(1)
        return received

    async def scenario(_port: int) -> None:
        served = asyncio.get_running_loop().run_in_executor(None, serve)
        dialer = DirectDialer(security=bench.client())
        link = await dialer.dial("127.0.0.1", listening.getsockname()[1], timeout=10)
        with socket.socket(fileno=os.dup(link._descriptor)) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        answered = link.send(frame)
        states = [(link._unsent, link._is_writing)]
        may_read.set()
        assert bytes(await answered) == b"ok"
        states.append((link._unsent, link._is_writing))
        assert states == [(b"", True), (b"", False)], "encrypted and waiting; gone"
        link.close()
        assert await served == len(frame) + 4

    with listening:
        bench.run(scenario)


def test_a_follow_up_asks_again_over_tls(bench: Bench) -> None:
    async def scenario(port: int) -> None:
        link = await DirectDialer(security=bench.client()).dial("127.0.0.1", port, timeout=10)
        left = [200_000, 10, 70_000]

        def follow_up(frame: memoryview) -> bytes | None:
            return bytes([REPEAT]) + left.pop().to_bytes(4, "big") if left else None

        assert len(await link.exchange(bytes([REPEAT]) + (5).to_bytes(4, "big"), follow_up)) == 200_000
        link.close()

    bench.run(scenario)


def test_a_secret_is_not_shown() -> None:
    links = SecureLinks(
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), Credentials("PLAIN", "alice", Secret("canary-5d"))
    )
    assert "canary-5d" not in repr(links)

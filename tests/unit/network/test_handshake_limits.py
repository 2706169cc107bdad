"""A handshake has a size, a time, and company of a bounded number."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from headrace.network import tls_handshake
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint
from headrace.network.response import Response
from tests.unit.network import tls_material

MOST_CONNECTIONS = 5
HELLO_WITHOUT_END = b"\x01\x00\xff\xff\xff"
"""A ClientHello of 16 MB, of which the first bytes have come."""


def serve_nobody(_connection: Connection, _frame: memoryview) -> Response:
    raise AssertionError("nobody has shaken hands")


class Bench(NamedTuple):
    endpoint: Endpoint
    port: int
    failures: list[str]
    peers: list[socket.socket]

    async def connect(self, says: bytes = b"") -> socket.socket:
        """When the endpoint has it, or has closed it."""
        before = self.endpoint.accepted + self.endpoint.refused
        peer = socket.create_connection(("127.0.0.1", self.port))
        peer.setblocking(False)
        self.peers.append(peer)
        if says:
            await asyncio.get_running_loop().sock_sendall(peer, says)
        while self.endpoint.accepted + self.endpoint.refused == before:
            await asyncio.sleep(0.001)
        return peer


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    failures: list[str] = []
    with ThreadPoolExecutor(1) as threads:
        endpoint = Endpoint(
            asyncio.get_running_loop(),
            threads,
            max_frame_bytes=1000,
            max_connections=MOST_CONNECTIONS,
            on_failed_handshake=lambda _host, _listener, reason: failures.append(reason),
        )
        endpoint.tls[""] = tls_material.settings()
        made = Bench(endpoint, endpoint.bind("127.0.0.1", 0), failures, [])
        endpoint.start_accepting(serve_nobody)
        async with asyncio.timeout(20):
            yield made
        for peer in made.peers:
            peer.close()
        endpoint.close()


def record(content: bytes) -> bytes:
    return b"\x16\x03\x01" + len(content).to_bytes(2, "big") + content


async def test_a_handshake_that_is_too_large_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL has a limit of its own for each message. This one is for all that is waited for."""
    monkeypatch.setattr(tls_handshake, "MAX_HANDSHAKE_BYTES", 1000)
    peer = await bench.connect(record(HELLO_WITHOUT_END[:1] + b"\x00\x20\x00" + bytes(900)))
    await asyncio.sleep(0.01)
    assert bench.failures == []
    await asyncio.get_running_loop().sock_sendall(peer, record(bytes(200)))
    while bench.endpoint.handshakes:
        await asyncio.sleep(0.001)
    assert bench.failures == ["a handshake of more than 1000 bytes"]


def test_the_limits_are_those_that_are_documented() -> None:
    assert tls_handshake.MAX_HANDSHAKE_BYTES == 64 * 1024
    assert tls_handshake.MAX_PER_HOST == 64


@pytest.mark.parametrize("says", [b"", record(HELLO_WITHOUT_END)[:7]], ids=["nothing", "a part"])
async def test_a_handshake_that_does_not_get_on_is_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, says: bytes
) -> None:
    peer = await bench.connect(says)
    bench.endpoint.handshakes.end_overdue()
    assert len(bench.endpoint.handshakes) == 1
    later = time.monotonic() + bench.endpoint.handshakes.max_seconds + 1
    monkeypatch.setattr(tls_handshake, "monotonic", lambda: later)
    bench.endpoint.handshakes.end_overdue()
    assert len(bench.endpoint.handshakes) == 0
    assert bench.failures == ["the handshake was not done after 10 s"]
    assert await asyncio.get_running_loop().sock_recv(peer, 10) == b""


async def test_handshakes_that_wait_for_others_of_their_host_count_as_connections(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one address could take every descriptor, however few connections are allowed."""
    monkeypatch.setattr(tls_handshake, "MAX_PER_HOST", 2)
    peers = [await bench.connect() for _ in range(MOST_CONNECTIONS + 3)]
    assert bench.endpoint.refused == 3
    for peer in peers[MOST_CONNECTIONS:]:
        assert await asyncio.get_running_loop().sock_recv(peer, 10) == b""
    assert len(bench.endpoint.handshakes) == MOST_CONNECTIONS


async def test_when_it_is_over_nobody_is_left_waiting(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_handshake, "MAX_PER_HOST", 2)
    peers = [await bench.connect() for _ in range(4)]
    bench.endpoint.close()
    assert len(bench.endpoint.handshakes) == 0
    for peer in peers:
        assert await asyncio.get_running_loop().sock_recv(peer, 10) == b""

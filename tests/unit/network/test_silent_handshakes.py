"""Peers that connect and say nothing keep no others of their host waiting for long."""

from __future__ import annotations

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.network import tls_handshake
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint
from headrace.network.response import Response
from tests.unit.network import tls_material


def echo(_connection: Connection, frame: memoryview) -> Response:
    return [b"=" + bytes(frame)]


@pytest.mark.parametrize("beginning", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["silent", "half a record"])
async def test_others_of_the_host_soon_have_their_turn(
    monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    threads = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()
    endpoint = Endpoint(loop, threads, max_frame_bytes=1000, max_connections=1000, backlog=200)
    endpoint.tls[""] = tls_material.settings()
    port = endpoint.bind("127.0.0.1", 0)
    endpoint.start_accepting(echo)
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(tls_handshake.MAX_PER_HOST)]
    try:
        for each in silent:
            each.sendall(beginning)
        async with asyncio.timeout(20):
            while len(endpoint.handshakes) < len(silent):
                await asyncio.sleep(0.01)
            dialling = asyncio.ensure_future(
                asyncio.open_connection("127.0.0.1", port, ssl=tls_material.client_context())
            )
            await asyncio.sleep(0.1)
            assert not dialling.done()
            later = time.monotonic() + tls_handshake.SILENT_SECONDS + 0.1
            monkeypatch.setattr(tls_handshake, "monotonic", lambda: later)
            endpoint.handshakes.end_overdue()
            reader, writer = await dialling
            writer.write(b"\0\0\0\x01x")
            assert await reader.readexactly(2) == b"=x"
        writer.close()
    finally:
        for each in silent:
            each.close()
        endpoint.close()
        threads.shutdown()

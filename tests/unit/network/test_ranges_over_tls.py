"""Records that lie in files leave encrypted: `sendfile` on the socket would put them on the wire as is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from headrace.core.ports import FileRange
from headrace.log.os_disk import OsDisk
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint
from headrace.network.response import Response
from tests.unit.network import tls_material

RECORD = b"a record that nobody on the way can read "
SIZES = [100, 20_000, 1_000_000]
"""Small ones are read into the answer; others are ranges, of one call or of several."""


@asynccontextmanager
async def tapped(port: int) -> AsyncIterator[tuple[int, bytearray]]:
    """A port that passes everything on, and what it has passed on."""
    seen = bytearray()
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            seen.extend(data)
            sink.write(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_target, to_target = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, to_target))
        with suppress(ConnectionError):
            await asyncio.gather(pass_on(reader, to_target), pass_on(from_target, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], seen
        for writer in writers:
            writer.transport.abort()


async def fetched(size: int, path: Path, *, has_tls: bool) -> tuple[bytes, bytes]:
    """What the client gets, and what somebody on the way sees."""
    content = (RECORD * (size // len(RECORD) + 1))[:size]
    path.write_bytes(content)
    file = OsDisk().open(str(path))

    def serve(_connection: Connection, _frame: memoryview) -> Response:
        return [b"head:", FileRange(file, 0, size), b":tail"]

    with ThreadPoolExecutor(1) as threads:
        endpoint = Endpoint(asyncio.get_running_loop(), threads, max_frame_bytes=1000)
        if has_tls:
            endpoint.tls[""] = tls_material.settings()
        port = endpoint.bind("127.0.0.1", 0)
        endpoint.start_accepting(serve)
        context = tls_material.client_context() if has_tls else None
        try:
            async with asyncio.timeout(20), tapped(port) as (way, seen):
                reader, writer = await asyncio.open_connection("127.0.0.1", way, ssl=context)
                writer.write(b"\0\0\0\x01f")
                found = await reader.readexactly(len(b"head:") + size + len(b":tail"))
                writer.transport.abort()
        finally:
            endpoint.close()
            file.close()
    assert found == b"head:" + content + b":tail"
    return found, bytes(seen)


@pytest.mark.parametrize("size", SIZES)
async def test_no_record_can_be_read_on_the_way(tmp_path: Path, size: int) -> None:
    _, seen = await fetched(size, tmp_path / "records", has_tls=True)
    assert len(seen) > size
    assert RECORD[:20] not in seen
    assert b"head:" not in seen


async def test_without_tls_it_can_so_the_tap_sees_it(tmp_path: Path) -> None:
    _, seen = await fetched(20_000, tmp_path / "records", has_tls=False)
    assert RECORD in seen

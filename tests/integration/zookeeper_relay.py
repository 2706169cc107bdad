"""A way to ZooKeeper that can be cut, at the moment and in the direction that a test wants."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from headrace.testing.zookeeper import HOST, Node, free_ports

_CHUNK = 1 << 20


class Relay:
    """Listens on the test's own loop. One that is `closed` refuses; `connect` is its address."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._server: asyncio.Server | None = None
        (self._port,) = free_ports(HOST, 1)
        self._writers: dict[asyncio.StreamWriter, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._to_server = asyncio.Event()
        self._to_server.set()
        self._to_client = asyncio.Event()
        self._to_client.set()
        self.passed = 0
        """Bytes that went on to the server."""

    @property
    def connect(self) -> str:
        return f"{HOST}:{self._port}"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self._port)

    async def close(self) -> None:
        """Refuse connections, and end those there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    def cut(self) -> None:
        """End all connections. New ones are taken."""
        writers, self._writers = self._writers, {}
        for writer in writers:
            writer.transport.abort()

    def hold(self, *, requests: bool = False, answers: bool = False) -> None:
        """Let nothing pass in a direction, without ending anything: silence."""
        if requests:
            self._to_server.clear()
        if answers:
            self._to_client.clear()

    def release(self) -> None:
        self._to_server.set()
        self._to_client.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            ahead, back = await asyncio.open_connection(HOST, self._node.port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer: None, back: None}
        for task in (
            asyncio.create_task(self._pass(reader, back, self._to_server, count=True)),
            asyncio.create_task(self._pass(ahead, writer, self._to_client)),
        ):
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)

    async def _pass(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        gate: asyncio.Event,
        *,
        count: bool = False,
    ) -> None:
        try:
            while data := await source.read(_CHUNK):
                await gate.wait()
                sink.write(data)
                self.passed += len(data) if count else 0
        except OSError:
            pass
        finally:
            sink.transport.abort()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
        await self.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

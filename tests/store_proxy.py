"""A proxy in front of an object store that can be slow, refuse, lie and fall silent, by HTTP/1.1.

What a client has signed stays signed, since nothing of a request is changed, its host included.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Self

from tests.ports import own_port

_HEAD_BYTES: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_LOOK_SECONDS: Final = 0.02
_REASONS: Final = {403: "Forbidden", 429: "Too Many Requests", 500: "Internal", 503: "Slow Down"}


class Request(NamedTuple):
    method: str
    path: str
    """With what follows the question mark."""
    headers: dict[str, str]

    @property
    def is_manifest(self) -> bool:
        return self.path.partition("?")[0].endswith("/manifest")

    @property
    def is_records(self) -> bool:
        return self.path.partition("?")[0].endswith(".log")


@dataclass
class Fate:
    """What becomes of one request."""

    answer: int | None = None
    """This status at once; the store hears nothing."""
    code: str = ""
    """What the store would call it."""
    wait_for: threading.Event | None = None
    """Before the store hears of it."""
    lose_answer: bool = False
    """The store does it, and the client is cut off."""
    silent_after: int | None = None
    """So many bytes of the body come, and then nothing, and the connection stays."""
    cut_after: int | None = None
    """So many bytes of the body come, and then the end."""
    flip_bit: bool = False
    """In the middle of the body that comes back."""
    bytes_per_second: float | None = None
    before_answer: Callable[[int], None] | None = None
    """Called with the status, before the client hears of it."""


@dataclass
class _Message:
    first: str
    headers: dict[str, str]
    head: bytes
    body: bytes = b""
    stays_open: bool = field(default=True)


class StoreProxy:
    """Decides about each request by `rule`, which may be exchanged at any time; the passed are in `seen`."""

    def __init__(self, upstream_port: int, rule: Callable[[Request], Fate | None] | None = None) -> None:
        self.port = own_port()
        self.rule = rule
        self.down = False
        """Connections are closed before anything is read."""
        self.seen: list[tuple[str, str, int]] = []
        """Method, path and status of everything that was answered."""
        self._upstream_port = upstream_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="store-proxy", daemon=True)
        self._ready = threading.Event()
        self._stopping = asyncio.Event()
        self._serving: set[asyncio.Task[None] | None] = set()
        """The loop itself does not keep them."""

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        async def serve() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=_HEAD_BYTES)
            self._ready.set()
            await self._stopping.wait()
            server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(serve())
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._serving.add(task)
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError, asyncio.LimitOverrunError):
            while not self.down and await self._answer(await _read(reader), writer):
                pass
        writer.close()
        self._serving.discard(task)

    async def _answer(self, message: _Message, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        method, path, _ = message.first.split(" ", 2)
        fate = (self.rule and self.rule(Request(method, path, message.headers))) or Fate()
        if fate.answer is not None:
            self.seen.append((method, path, fate.answer))
            writer.write(_refusal(fate.answer, fate.code))
            await writer.drain()
            return True
        while fate.wait_for is not None and not fate.wait_for.is_set():
            await asyncio.sleep(_LOOK_SECONDS)
        answer = await self._ask(message, method)
        status = int(answer.first.split(" ", 2)[1])
        self.seen.append((method, path, status))
        if fate.before_answer is not None:
            fate.before_answer(status)
        if fate.lose_answer:
            return False
        return await _give(answer, fate, writer)

    async def _ask(self, message: _Message, method: str) -> _Message:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._upstream_port, limit=_HEAD_BYTES)
        try:
            writer.write(message.head + message.body)
            await writer.drain()
            return await _read(reader, bodiless=method == "HEAD")
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader, *, bodiless: bool = False) -> _Message:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = [line.partition(":") for line in lines]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    message = _Message(first, headers, head)
    parts = first.split(" ", 2)
    if bodiless or (parts[0].startswith("HTTP/") and parts[1] in ("204", "304")):
        return message
    if headers.get("transfer-encoding", "").lower() == "chunked":
        message.body = await _read_chunks(reader)
    elif "content-length" in headers:
        message.body = await reader.readexactly(int(headers["content-length"]))
    return message


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    """As they came, with their lengths."""
    found = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        found += line
        size = int(line.partition(b";")[0], 16)
        found += await reader.readexactly(size + 2)
        if size == 0:
            return bytes(found)


async def _give(answer: _Message, fate: Fate, writer: asyncio.StreamWriter) -> bool:
    body = bytearray(answer.body)
    if fate.flip_bit and body:
        body[len(body) // 2] ^= 0x10
    end = min(each for each in (fate.silent_after, fate.cut_after, len(body)) if each is not None)
    writer.write(answer.head)
    piece = _PIECE if fate.bytes_per_second is None else max(1, int(fate.bytes_per_second * _LOOK_SECONDS))
    for begin in range(0, end, piece):
        writer.write(bytes(body[begin : min(begin + piece, end)]))
        await writer.drain()
        if fate.bytes_per_second is not None:
            await asyncio.sleep(_LOOK_SECONDS)
    await writer.drain()
    if fate.silent_after is not None and fate.silent_after < len(body):
        await asyncio.Event().wait()
    return end == len(body)


def _refusal(status: int, code: str) -> bytes:
    text = (
        f"<Error><Code>{code or f'Proxy{status}'}</Code><Message>said by the proxy</Message></Error>".encode()
    )
    reason = _REASONS.get(status, "Status")
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/xml\r\nContent-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text

"""One connection to one broker: frames out, frames in, answers matched in order.

A broker answers the requests of a connection in the order in which they came, so what waits is a queue.
An answer that does not come in time ends the connection: nothing after it could be matched.
"""

from __future__ import annotations

import asyncio
from collections import deque
from struct import Struct
from typing import Final, TypeVar

from headrace.client.errors import (
    ApiMissing,
    ClientFailure,
    ConnectionLost,
    NotAKafkaBroker,
    TimedOut,
    Unreachable,
)
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import request_header_version, response_header_version
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.api_versions_response import ApiVersionsResponse
from headrace.protocol.primitives import MAX_HEADER_TAGS, Reader, Writer

Answer = TypeVar("Answer", bound=Message)

MAX_FRAME_BYTES: Final = 256 * 1024 * 1024
CONNECT_TIMEOUT: Final = 10.0
REQUEST_TIMEOUT: Final = 30.0
_HANDSHAKE_VERSION: Final = 3
_PREFIX: Final = Struct(">ihhi")
_LENGTH: Final = Struct(">i")
_READ_BYTES: Final = 1 << 20


class Connection:
    __slots__ = (
        "_closed",
        "_next_id",
        "_reader",
        "_task",
        "_versions",
        "_waiting",
        "_writer",
        "client_id",
        "peer",
    )

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str, client_id: str
    ) -> None:
        self.peer = peer
        self.client_id = client_id
        self._reader = reader
        self._writer = writer
        self._next_id = 0
        self._closed: ClientFailure | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        # In the order of the requests: (correlation id, who waits).
        self._waiting: deque[tuple[int, asyncio.Future[memoryview]]] = deque()
        self._task = asyncio.get_running_loop().create_task(self._receive())

    @classmethod
    async def open(
        cls, host: str, port: int, *, client_id: str = "headrace", timeout: float = CONNECT_TIMEOUT
    ) -> Connection:
        """Connected, and the versions of both sides compared."""
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(host, port, limit=_READ_BYTES)
        except TimeoutError:
            raise Unreachable(host, port, f"no answer in {timeout:g} s") from None
        except ConnectionRefusedError:
            raise Unreachable(host, port) from None
        except OSError as error:
            raise Unreachable(host, port, error.strerror or str(error)) from None
        connection = cls(reader, writer, f"{host}:{port}", client_id)
        try:
            await connection._handshake(timeout)
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._closed is None

    def supports(self, api: int) -> bool:
        return api in self._versions

    def version_for(self, request: type[Message], at_most: int | None = None) -> int:
        """The highest version of `request` that both sides have; ApiMissing if there is none."""
        lowest, highest = self._versions.get(request.API_KEY, (0, -1))
        mine = request.MAX_VERSION if at_most is None else min(at_most, request.MAX_VERSION)
        version = min(highest, mine)
        if version < max(lowest, request.MIN_VERSION):
            name = ApiKey(request.API_KEY).name
            has = f"versions {lowest} to {highest}" if highest >= 0 else "none"
            raise ApiMissing(
                f"the broker at {self.peer} has {has} of {name}, this client {request.MIN_VERSION} to {mine}"
            )
        return version

    async def request(
        self,
        message: Message,
        answer: type[Answer],
        *,
        version: int | None = None,
        at_most: int | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> Answer:
        """Send `message`, await its answer. `version` is taken as it is; otherwise the highest common one."""
        if version is None:
            version = self.version_for(type(message), at_most)
        future = self._send(message, version)
        body = await self._await(future, message, timeout)
        return self._parse(body, message.API_KEY, answer, version)

    async def send_only(self, message: Message, *, at_most: int | None = None) -> None:
        """For the one request that has no answer: Produce with acks=0."""
        self._write(message, self.version_for(type(message), at_most))
        await self._drain()

    async def close(self) -> None:
        self._fail(ConnectionLost(f"the connection to {self.peer} is closed"))
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            await self._writer.wait_closed()
        except OSError:
            pass  # it is gone either way

    async def _handshake(self, timeout: float) -> None:
        hello = ApiVersionsRequest(client_software_name="headrace", client_software_version="0")
        try:
            body = await self._await(self._send(hello, _HANDSHAKE_VERSION), hello, timeout)
            if Reader(body, 4).int16() == ErrorCode.UNSUPPORTED_VERSION:  # answered in version 0, always
                body = await self._await(self._send(hello, 0), hello, timeout)
                reply = self._parse(body, hello.API_KEY, ApiVersionsResponse, 0)
            else:
                reply = self._parse(body, hello.API_KEY, ApiVersionsResponse, _HANDSHAKE_VERSION)
        except (ConnectionLost, TimedOut) as error:
            raise NotAKafkaBroker(
                f"what listens at {self.peer} does not answer as a Kafka broker does: {error}",
                "check the port; listeners with TLS or SASL are not supported yet",
            ) from None
        if reply.error_code:
            raise ApiMissing(f"the broker at {self.peer} refuses to tell its versions: {reply.error_code}")
        self._versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in reply.api_keys}

    def _send(self, message: Message, version: int) -> asyncio.Future[memoryview]:
        correlation_id = self._write(message, version)
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting.append((correlation_id, future))
        return future

    def _write(self, message: Message, version: int) -> int:
        if self._closed is not None:
            raise self._closed
        correlation_id = self._next_id
        self._next_id = (correlation_id + 1) & 0x7FFFFFFF
        writer = Writer()
        writer.nullable_string(self.client_id)
        if request_header_version(message.API_KEY, version) >= 2:
            writer.no_tags()
        body = writer.getvalue() + message.to_bytes(version)
        self._writer.write(_PREFIX.pack(8 + len(body), message.API_KEY, version, correlation_id) + body)
        return correlation_id

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError as error:
            self._fail(ConnectionLost(f"the connection to {self.peer} broke: {error}"))
            raise ConnectionLost(f"the connection to {self.peer} broke: {error}") from None

    async def _await(
        self, future: asyncio.Future[memoryview], message: Message, timeout: float
    ) -> memoryview:
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            text = f"the broker at {self.peer} gave no answer to {type(message).__name__} in {timeout:g} s"
            self._fail(ConnectionLost(f"the connection to {self.peer} was given up: {text}"))
            raise TimedOut(text) from None

    def _parse(self, frame: memoryview, api: int, answer: type[Answer], version: int) -> Answer:
        reader = Reader(frame, 4)
        try:
            if response_header_version(api, version) >= 1:
                reader.skip_tags(MAX_HEADER_TAGS)
            message = answer.decode(reader, version)
            reader.finish()
        except HeadraceError as error:
            failure = NotAKafkaBroker(f"the broker at {self.peer} sent a broken {answer.__name__}: {error}")
            self._fail(failure)
            raise failure from None
        return message

    async def _receive(self) -> None:
        """Until the end of the connection: frames to those who wait for them."""
        failure: ClientFailure
        try:
            while True:
                (length,) = _LENGTH.unpack(await self._reader.readexactly(4))
                if not 4 <= length <= MAX_FRAME_BYTES:
                    failure = NotAKafkaBroker(f"the broker at {self.peer} sent a frame of {length} bytes")
                    break
                frame = await self._reader.readexactly(length)
                (correlation_id,) = _LENGTH.unpack_from(frame)
                if not self._waiting or self._waiting[0][0] != correlation_id:
                    failure = NotAKafkaBroker(f"the broker at {self.peer} sent an answer that nobody awaits")
                    break
                future = self._waiting.popleft()[1]
                if not future.done():
                    future.set_result(memoryview(frame))
        except (asyncio.IncompleteReadError, OSError):
            failure = ConnectionLost(f"the broker at {self.peer} closed the connection")
        self._fail(failure)

    def _fail(self, failure: ClientFailure) -> None:
        if self._closed is None:
            self._closed = failure
            self._writer.close()
        while self._waiting:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_exception(failure)

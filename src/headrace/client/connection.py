"""One connection to one broker, in messages: versions, correlation ids, deadlines, over a link of frames.

A broker answers the requests of a connection in the order in which they came, which the link relies on. The
correlation id is only compared. An answer that does not come in time ends the connection: nothing after it
could be matched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from struct import Struct
from typing import Final, TypeVar

from headrace.client.errors import (
    ApiMissing,
    ClientFailure,
    ConnectionLost,
    NotAKafkaBroker,
    NotTrusted,
    TimedOut,
    Unreachable,
)
from headrace.client.link import TcpDialer, TcpLink
from headrace.client.waits import Waits
from headrace.core.errors import HeadraceError
from headrace.core.ports_network import Dialer, Link, PeerRefused, PeerUnavailable, PeerUntrusted
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import request_header_version, response_header_version
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.api_versions_response import ApiVersionsResponse
from headrace.protocol.primitives import MAX_HEADER_TAGS, Reader, Writer

Answer = TypeVar("Answer", bound=Message)

CONNECT_TIMEOUT: Final = 10.0
REQUEST_TIMEOUT: Final = 30.0
_HANDSHAKE_VERSION: Final = 3
_PREFIX: Final = Struct(">hhi")
_DIALER: Final = TcpDialer()


class Connection:
    __slots__ = ("_closed", "_link", "_next_id", "_versions", "_waits", "client_id", "peer")

    def __init__(self, link: Link, peer: str, client_id: str, waits: Waits | None = None) -> None:
        self.peer = peer
        self.client_id = client_id
        self._link = link
        self._next_id = 0
        self._closed: ClientFailure | None = None
        self._versions: dict[int, tuple[int, int]] | None = None
        """What the peer said that it has; None between brokers, which have the same."""
        self._waits = waits

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str = "headrace",
        timeout: float = CONNECT_TIMEOUT,
        waits: Waits | None = None,
        dialer: Dialer = _DIALER,
    ) -> Connection:
        """Connected, and the versions of both sides compared."""
        try:
            link = await dialer.dial(host, port, timeout=timeout)
        except PeerRefused:
            raise Unreachable(host, port) from None
        except PeerUntrusted as error:
            raise NotTrusted(f"{host}:{port}", str(error)) from None
        except PeerUnavailable as error:
            raise Unreachable(host, port, str(error)) from None
        connection = cls(link, f"{host}:{port}", client_id, waits)
        try:
            await connection._handshake(timeout)
        except BaseException:
            await connection.close()
            raise
        return connection

    @classmethod
    def over(cls, link: Link, peer: str, *, client_id: str = "headrace") -> Connection:
        """Between brokers: nothing is asked beforehand, the newest version of each request is used."""
        return cls(link, peer, client_id)

    @property
    def is_open(self) -> bool:
        return self._closed is None and self._link.is_open

    def supports(self, api: int) -> bool:
        return self._versions is None or api in self._versions

    def version_for(self, request: type[Message], at_most: int | None = None) -> int:
        """The highest version of `request` that both sides have; ApiMissing if there is none."""
        mine = request.MAX_VERSION if at_most is None else min(at_most, request.MAX_VERSION)
        if self._versions is None:
            return mine
        lowest, highest = self._versions.get(request.API_KEY, (0, -1))
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
        body = await self._ask(message, version, timeout)
        return self._parse(body, message.API_KEY, answer, version)

    async def send_only(self, message: Message, *, at_most: int | None = None) -> None:
        """For the one request that has no answer: Produce with acks=0."""
        link = self._link
        if not isinstance(link, TcpLink):
            raise TypeError("only a TCP link carries requests that have no answer")
        frame = self._frame(message, self.version_for(type(message), at_most))[1]
        try:
            link.send_only(frame)
            await link.drain()
        except PeerUnavailable as error:
            raise self._give_up(self._lost(error)) from None

    async def close(self) -> None:
        self._give_up(ConnectionLost(f"the connection to {self.peer} is closed"))
        if isinstance(self._link, TcpLink):
            await self._link.wait_closed()

    async def _handshake(self, timeout: float) -> None:
        hello = ApiVersionsRequest(client_software_name="headrace", client_software_version="0")
        try:
            body = await self._ask(hello, _HANDSHAKE_VERSION, timeout)
            if Reader(body, 4).int16() == ErrorCode.UNSUPPORTED_VERSION:  # answered in version 0, always
                body = await self._ask(hello, 0, timeout)
                reply = self._parse(body, hello.API_KEY, ApiVersionsResponse, 0)
            else:
                reply = self._parse(body, hello.API_KEY, ApiVersionsResponse, _HANDSHAKE_VERSION)
        except (ConnectionLost, TimedOut) as error:
            raise NotAKafkaBroker(
                f"what listens at {self.peer} does not answer as a Kafka broker does: {error}",
                "check the port; a listener with TLS or SASL needs --command-config with security.protocol",
            ) from None
        if reply.error_code:
            raise ApiMissing(f"the broker at {self.peer} refuses to tell its versions: {reply.error_code}")
        self._versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in reply.api_keys}

    def _frame(self, message: Message, version: int) -> tuple[int, bytes]:
        if self._closed is not None:
            raise self._closed
        correlation_id = self._next_id
        self._next_id = (correlation_id + 1) & 0x7FFFFFFF
        writer = Writer()
        writer.buf += _PREFIX.pack(message.API_KEY, version, correlation_id)
        writer.nullable_string(self.client_id)
        if request_header_version(message.API_KEY, version) >= 2:
            writer.no_tags()
        return correlation_id, writer.getvalue() + message.to_bytes(version)

    async def _ask(self, message: Message, version: int, timeout: float) -> memoryview:
        correlation_id, frame = self._frame(message, version)
        waits = self._waits
        question = 0 if waits is None else waits.asked(self.peer, message.API_KEY)
        try:
            body = await self._within(self._link.send(frame), message, timeout)
        except PeerUnavailable as error:
            raise self._give_up(self._lost(error)) from None
        finally:
            if waits is not None:
                waits.answered(question)
        if len(body) < 4 or int.from_bytes(body[:4], "big", signed=True) != correlation_id:
            raise self._give_up(NotAKafkaBroker(f"the broker at {self.peer} sent an answer to nothing"))
        return body

    async def _within(self, awaited: Awaitable[memoryview], message: Message, timeout: float) -> memoryview:
        try:
            async with asyncio.timeout(timeout):
                return await awaited
        except TimeoutError:
            text = f"the broker at {self.peer} gave no answer to {type(message).__name__} in {timeout:g} s"
            self._give_up(ConnectionLost(f"the connection to {self.peer} was given up: {text}"))
            raise TimedOut(text) from None

    def _lost(self, error: PeerUnavailable) -> ClientFailure:
        """Why the connection is over: what was decided here before, or what the link says."""
        if isinstance(error, PeerUntrusted) and self._closed is None:
            return NotTrusted(self.peer, str(error))
        return self._closed or ConnectionLost(f"the broker at {self.peer} closed the connection: {error}")

    def _parse(self, frame: memoryview, api: int, answer: type[Answer], version: int) -> Answer:
        reader = Reader(frame, 4)
        try:
            if response_header_version(api, version) >= 1:
                reader.skip_tags(MAX_HEADER_TAGS)
            message = answer.decode(reader, version)
            reader.finish()
        except HeadraceError as error:
            failure = NotAKafkaBroker(f"the broker at {self.peer} sent a broken {answer.__name__}: {error}")
            raise self._give_up(failure) from None
        return message

    def _give_up(self, failure: ClientFailure) -> ClientFailure:
        """Close the link; `failure` is what later requests are told, unless there was an earlier one."""
        if self._closed is None:
            self._closed = failure
            self._link.close()
        return failure

"""What this broker asks of the controller, wherever that is: in another process, or in this one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping
from typing import Final, Protocol, TypeVar

from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.requests.in_flight import InFlightRequests
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.shell import Controller
from headrace.core.errors import InvalidRequest, NotController
from headrace.core.ids import NO_BROKER
from headrace.core.ports_network import Link, PeerSilent, PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.envelope_request import EnvelopeRequest
from headrace.protocol.messages.envelope_response import EnvelopeResponse
from headrace.security.forwarded_principal import encode_principal
from headrace.security.hosts import encode_host
from headrace.security.principal import Principal

A = TypeVar("A", bound=Message)

DIAL_SECONDS: Final = 2.0
REQUEST_SECONDS: Final = 10.0
FORWARD_SECONDS: Final = 30.0
RETRY_SECONDS: Final = 0.05


class ServeHere(Protocol):
    """Serves a request of this broker's own, when it is the active controller itself."""

    def __call__(self, message: Message) -> Message | Awaitable[Message]: ...


class ControllerChannel:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        controller: Controller,
        node: BrokerLifecycle,
        in_flight: InFlightRequests,
        versions: Mapping[int, int],
        serve_here: ServeHere,
    ) -> None:
        self._runtime = runtime
        self._controller = controller
        self._in_flight = in_flight
        self._versions = versions
        """The highest of each API that a controller serves."""
        self._serve_here = serve_here
        # Two links, so that a creation of a thousand topics does not hold up a change of an ISR.
        self._own = _Link(runtime, metadata, node)
        self._forwarded = _Link(runtime, metadata, node)

    async def request(self, message: Message, answer: type[A], *, timeout: float = REQUEST_SECONDS) -> A:
        """Ask the active controller now. Raises NotController if nobody is known to be, PeerUnavailable if
        the answer did not come: then the request may have taken effect."""
        if self._controller.is_active:
            result = self._serve_here(message)
            try:
                async with asyncio.timeout(timeout):
                    reply = await result if inspect.isawaitable(result) else result
            except TimeoutError:
                raise PeerSilent(f"{type(message).__name__} was not decided in {timeout:g} s") from None
            assert isinstance(reply, answer)
            return reply
        link = await self._own.open()
        return await ask(link, message, answer, version=self._versions[message.API_KEY], timeout=timeout)

    async def forward(
        self, frame: bytes, principal: Principal, host: str, came_by_token: bool = False
    ) -> bytes:
        """Have the controller serve a client's request; the frame of its answer.

        While no controller can be asked this waits, as the client would, but not once this broker stops.
        Raises NotController then, and at last; InvalidRequest for what the controller cannot answer.
        """
        loop = self._runtime.loop
        deadline = loop.time() + FORWARD_SECONDS
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(principal, came_by_token),
            client_host_address=_encoded(host),
        )
        while loop.time() < deadline:
            try:
                reply = await self.request_forwarded(envelope, deadline - loop.time())
            except (NotController, PeerUnavailable):
                reply = EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
            if reply.error_code == ErrorCode.NONE and reply.response_data is not None:
                return bytes(reply.response_data)
            if reply.error_code != ErrorCode.NOT_CONTROLLER:
                raise InvalidRequest(f"the controller answers with {ErrorCode(reply.error_code).name}")
            if self._in_flight.is_draining:
                break
            await asyncio.sleep(RETRY_SECONDS)
        raise NotController("no controller could be asked in time")

    async def request_forwarded(self, envelope: EnvelopeRequest, timeout: float) -> EnvelopeResponse:
        if self._controller.is_active:
            return await self.request(envelope, EnvelopeResponse, timeout=timeout)
        link = await self._forwarded.open()
        return await ask(link, envelope, EnvelopeResponse, version=0, timeout=timeout)

    def close(self) -> None:
        self._own.close()
        self._forwarded.close()


def _encoded(host: str) -> bytes:
    try:
        return encode_host(host)
    except ValueError:
        return host.encode()  # a simulated network has names


class _Link:
    """A link to the active controller, opened when it is needed and again when the controller moves."""

    def __init__(self, runtime: Runtime, metadata: MetadataCache, node: BrokerLifecycle) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._node = node
        self._link: Link | None = None
        self._to: tuple[int, int] | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> Link:
        async with self._opening:
            holder = self._node.controller_id
            address = self._metadata.address_of(holder)
            if holder == NO_BROKER or address is None:
                raise NotController("no broker is known to be the active controller")
            term = (holder, self._node.controller_epoch)
            if self._link is None or not self._link.is_open or self._to != term:
                self.close()
                self._link = await self._runtime.environment.dialer.dial(*address, timeout=DIAL_SECONDS)
                self._to = term
            return self._link

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

"""What an API is: a key, the versions that are served, the request's class, and who handles it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from headrace.broker.requests.context import RequestContext
from headrace.broker.security.delegation_tokens import Identity
from headrace.network.connection import Connection
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.security.principal import ANONYMOUS, Principal
from headrace.security.rights import Rights


class Call(NamedTuple):
    """Who asks, and in which version. Handlers ask this, not the connection: a forwarded request comes over a
    connection of another broker."""

    version: int
    client_id: str | None
    connection: Connection
    principal: Principal = ANONYMOUS
    host: str = ""
    """The peer's address."""
    rights: Rights | None = None
    """What the principal may do from that host; None without an authorizer."""
    came_by_token: bool = False
    """The principal has proved with a delegation token who it is."""

    @property
    def identity(self) -> Identity:
        return Identity(self.principal, self.came_by_token)


Handler = Callable[[RequestContext, Any, Call], Message | Awaitable[Message]]
"""Answers at once where it can; only what must wait for a commit is awaitable. Of those a `Completion` is the
cheapest: it needs no task."""


class Codec(NamedTuple):
    """Reads requests and frames responses as the generated classes do, in less time."""

    read_request: Callable[[memoryview, int, int], Message]
    """Of the frame, where the body begins in it, and the version."""
    frame_response: Callable[[Any, int, int], bytes]
    """Of the response, the version, and the correlation id."""


class Api(NamedTuple):
    key: ApiKey
    lowest: int
    highest: int
    request: type[Message]
    handle: Handler | None
    """None for what the dispatcher serves itself: Produce and Fetch from the raw frame, and Envelope."""
    at_controller: bool = False
    """Only the controller can decide it: another broker has it served there."""
    internal: bool = False
    """Between brokers only: not advertised to clients."""
    codec: Codec | None = None
    """Written by hand, for what is asked often."""

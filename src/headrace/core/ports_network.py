"""The network port: how one broker reaches another.

A link carries whole frames, without their length field, and answers come in the order of the requests. The
three ways in which a link fails mean different things: a host that refuses has no process at that port any
more, one that resets had one a moment ago, and one that is silent may only be slow.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from headrace.core.errors import RetriableError
from headrace.core.ports import Buffer


class PeerUnavailable(RetriableError):
    """The peer cannot be asked now. Whether a request that was sent took effect is not known."""


class PeerRefused(PeerUnavailable):
    """The host answered that nobody listens at the port: the process is gone."""


class PeerReset(PeerUnavailable):
    """The connection broke or was closed by the other side."""


class PeerSilent(PeerUnavailable):
    """No connection, or no answer, within the time."""


class PeerUntrusted(PeerUnavailable):
    """Somebody is there, and TLS or SASL failed: one of us does not accept the other. The text says the
    cure."""


class Link(Protocol):
    """One connection to one peer."""

    @property
    def is_open(self) -> bool: ...

    def send(self, frame: Buffer) -> Awaitable[memoryview]:
        """Send one request frame; its answer's frame, later. Raises PeerReset when the link breaks.

        The answer's memory belongs to the caller. Cancelling the awaitable closes the link: nothing behind
        the missing answer could be matched.
        """
        ...

    def close(self) -> None: ...


class Dialer(Protocol):
    async def dial(self, host: str, port: int, *, timeout: float) -> Link:
        """Raises PeerRefused, PeerReset, PeerSilent or PeerUntrusted."""
        ...

"""Requests whose frames are too large to be read at once: few of them are in hand, the others wait as bytes.

In hand a request takes up to a hundred times its frame: a message for each thing that it names, and a row of
the answer. Together they get a part of the loop, so that more of them would be done no sooner. Of one user
one is in hand at a time, so that nobody waits behind somebody who sends many. Those whose clients hang up
before their turn are not carried out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from headrace.broker.requests.api import Api
from headrace.broker.requests.fair_turns import FairTurns
from headrace.core.errors import HeadraceError
from headrace.core.memory import MemoryShare
from headrace.network.connection import Connection
from headrace.protocol.api_keys import ApiKey
from headrace.security.principal import ANONYMOUS

T = TypeVar("T")

MOST_IN_HAND: Final = 4
WAIT_FOR_OTHERS: Final = frozenset(
    (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.ENVELOPE)
)
"""What is answered when other members, or another broker, have done something: in hand it would keep out all
others for as long."""


class ClientHasGone(HeadraceError):
    pass


class NoRoomForRequest(HeadraceError):
    pass


class LargeRequests:
    """Invariant: the frames of all that wait or are in hand are counted in the share."""

    def __init__(self, memory: MemoryShare) -> None:
        self._memory = memory
        self._reading = FairTurns(MOST_IN_HAND)
        self._deciding = FairTurns(MOST_IN_HAND)
        """Of what the controller decides: it may wait for ZooKeeper, and the others do not."""

    def keep(self, frame: memoryview) -> bytes:
        """A copy that outlives the connection's buffer; the caller hands it to `in_turn`."""
        if self._memory.is_overdrawn:  # what it takes as a partial frame is counted until it is handed over
            self._memory.refusals += 1
            raise NoRoomForRequest("too many large requests wait: send it again later, or in smaller parts")
        self._memory.take(len(frame))
        return bytes(frame)

    async def in_turn(
        self, api: Api, kept: bytes, connection: Connection, carry_out: Callable[[], Awaitable[T]]
    ) -> T:
        try:
            async with self._admitted(api, connection):
                if connection.closed:
                    raise ClientHasGone("the client has hung up before its turn")
                return await carry_out()
        finally:
            self._memory.give(len(kept))

    @asynccontextmanager
    async def _admitted(self, api: Api, connection: Connection) -> AsyncIterator[None]:
        if connection.is_link or api.key in WAIT_FOR_OTHERS:
            yield
        else:
            turns = self._deciding if api.at_controller else self._reading
            async with turns.turn(_who(connection)):
                yield


def _who(connection: Connection) -> str:
    """The user, or the host of somebody who has not said who it is."""
    is_known = connection.principal != ANONYMOUS
    return str(connection.principal) if is_known else connection.peer_host

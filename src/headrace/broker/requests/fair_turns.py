"""Who comes next, where few may be in hand: everybody one at a time, and those who wait in rotation.

Somebody who sends very much waits behind oneself, and nobody else does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairTurns:
    """Invariant: nobody waits who has nothing in hand while there is room."""

    def __init__(self, most_in_hand: int) -> None:
        self._room = most_in_hand
        self._in_hand: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """In the order in which they have their turn; no queue is empty."""

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        if who in self._in_hand or not self._room:
            await self._wait(who)
        else:
            self._begin(who)
        try:
            yield
        finally:
            self._finish(who)

    def _begin(self, who: str) -> None:
        self._in_hand.add(who)
        self._room -= 1

    def _finish(self, who: str) -> None:
        self._in_hand.discard(who)
        self._room += 1
        queue = self._waiting.pop(who, None)
        if queue is not None:
            self._waiting[who] = queue  # whoever has just had a turn comes behind all others
        self._call_next()

    async def _wait(self, who: str) -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():  # called and cancelled in one turn of the loop
                self._finish(who)
            raise

    def _call_next(self) -> None:
        while self._room:
            who = next((each for each in self._waiting if each not in self._in_hand), None)
            if who is None:
                return
            queue = self._waiting[who]
            called = queue.popleft()
            if not queue:
                del self._waiting[who]
            if not called.cancelled():
                self._begin(who)
                called.set_result(None)

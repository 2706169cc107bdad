"""Long requests take turns: together they get one slice of each turn of the loop.

What a handler does in one go holds up every other connection, and a loop that is held up for seconds costs
the broker its place in the cluster. So whatever may take long looks at `is_over` between two steps, and waits
for `next` when its slice is spent. Meanwhile sockets are served, and others that wait have their slices.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from headrace.core.ports import Clock

SLICE_SECONDS: Final = 0.001
"""A produce that arrives meanwhile waits so much longer, at most."""


class Turns:
    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._ends = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_over(self) -> bool:
        return self._clock.monotonic() >= self._ends

    async def next(self) -> None:
        """Wait for a slice. Who has had one goes to the end of the queue."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._give)
        await turn

    def _give(self) -> None:
        """Once in a turn of the loop, and so to one of those who wait."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # done before its time is who was cancelled
                self._ends = self._clock.monotonic() + SLICE_SECONDS
                turn.set_result(None)
                break
        if self._waiting:
            self._loop.call_soon(self._give)

"""Long requests take turns: together they get one slice of each turn of the loop.

What a handler does in one go holds up every other connection, and a loop that is held up for seconds costs
the broker its place in the cluster. So whatever may take long looks at `is_over` between two steps, and waits
for `next` when its slice is spent. Meanwhile sockets are served, and others that wait have their slices.

While others send, long requests together get a quarter of the loop: a slice is followed by a rest of three
times its length. A connection whose long request is served is not read, so whatever has come is another's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from headrace.core.ports import Clock
from headrace.core.timers import TimerQueue

SLICE_SECONDS: Final = 0.001
"""A produce that arrives meanwhile waits so much longer, at most."""
REST: Final = 3.0
"""Lengths of the slice before, if anything was received since that began."""


class Turns:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        received: Callable[[], int] = lambda: 0,
    ) -> None:
        """`received`: how many bytes have come from all peers."""
        self._loop = loop
        self._timers = TimerQueue(loop)
        self._clock = clock
        self._received = received
        self._ends = 0.0
        self._began = 0.0
        self._seen = 0
        """What had been received when the last slice began."""
        self._rests_until = 0.0
        self._is_giving = False
        """Invariant: true exactly while `_give` or `_end`, which leads to it, will be called."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_over(self) -> bool:
        return self._clock.monotonic() >= self._ends

    async def next(self) -> None:
        """Wait for a slice. Who has had one goes to the end of the queue."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        if not self._is_giving:
            self._is_giving = True
            self._loop.call_soon(self._give)
        await turn

    def _give(self) -> None:
        """Once in a turn of the loop, and so to one of those who wait."""
        rest = self._rests_until - self._clock.monotonic()
        if rest > 0 and self._received() != self._seen:
            self._timers.after(rest, "a slice of the loop", self._give)
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # done before its time is who was cancelled
                # Three in a row, in the next turn of the loop: in between is nothing but the slice.
                self._loop.call_soon(self._begin)
                turn.set_result(None)
                self._loop.call_soon(self._end)
                return
        self._is_giving = False

    def _begin(self) -> None:
        self._began = self._clock.monotonic()
        self._ends = self._began + SLICE_SECONDS
        self._seen = self._received()

    def _end(self) -> None:
        now = self._clock.monotonic()
        self._rests_until = now + REST * (now - self._began)
        self._loop.call_soon(self._give)

"""A fetch that found too little waits here: for enough bytes, for its time, or for its peer to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.broker.fetch.wanted import Interest
from headrace.network.answer import Pending


class WaitingFetch:
    """Told when its partitions move. Answers once, on the loop's next turn, so that appends that arrive
    together are answered together."""

    __slots__ = ("_answer", "_due", "_interest", "_loop", "_missing_bytes", "_timer", "_waiting", "pending")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        interest: Interest,
        missing_bytes: int,
        max_wait_ms: int,
        answer: Callable[[Pending], None],
        waiting: dict[WaitingFetch, None],
    ) -> None:
        self._loop = loop
        self._interest = interest
        self._missing_bytes = missing_bytes
        self._answer = answer
        self._waiting = waiting
        self._due = False
        self.pending = Pending(exclusive=True)
        self.pending.on_abandon = self._leave
        if interest.as_replica:
            # A follower with something new to ask for says so by sending it behind this one.
            self.pending.on_overtaken = self._hurry
        if interest.waiting is not None:
            interest.waiting.finish()  # the same session over another connection: the old one is dead
        interest.waiting = self
        self._timer = loop.call_later(max_wait_ms / 1000, self.finish)
        waiting[self] = None

    def on_more(self, size: int) -> None:
        self._missing_bytes -= size
        if self._missing_bytes <= 0 and not self._due:
            self._due = True
            self._loop.call_soon(self.finish)

    def _hurry(self) -> None:
        self.on_more(self._missing_bytes)

    def finish(self) -> None:
        if self in self._waiting:
            self._leave()
            self._answer(self.pending)

    def _leave(self) -> None:
        self._waiting.pop(self, None)
        self._timer.cancel()
        interest = self._interest
        if interest.waiting is self:
            interest.waiting = None
        interest.on_wait_over()

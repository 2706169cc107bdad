"""A fetch that found too little waits here: for enough bytes, for its time, or for its peer to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.network.answer import Pending

if TYPE_CHECKING:
    from headrace.replication.partition import Partition


class WaitingFetch:
    """Told of every commit in its partitions. Answers once, on the loop's next turn, so that appends that
    arrive together are answered together."""

    __slots__ = ("_answer", "_due", "_loop", "_missing_bytes", "_partitions", "_timer", "_waiting", "pending")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        partitions: list[Partition],
        missing_bytes: int,
        max_wait_ms: int,
        answer: Callable[[Pending], None],
        waiting: set[WaitingFetch],
    ) -> None:
        self._loop = loop
        self._partitions = partitions
        self._missing_bytes = missing_bytes
        self._answer = answer
        self._waiting = waiting
        self._due = False
        self.pending = Pending(exclusive=True)
        self.pending.on_abandon = self._leave
        self._timer = loop.call_later(max_wait_ms / 1000, self.finish)
        waiting.add(self)
        for partition in partitions:
            partition.wait(self)

    def on_committed(self, appended_bytes: int) -> None:
        self._missing_bytes -= appended_bytes
        if (self._missing_bytes <= 0 or appended_bytes == 0) and not self._due:
            self._due = True
            self._loop.call_soon(self.finish)

    def finish(self) -> None:
        if self in self._waiting:
            self._leave()
            self._answer(self.pending)

    def _leave(self) -> None:
        self._waiting.discard(self)
        self._timer.cancel()
        for partition in self._partitions:
            partition.stop_waiting(self)

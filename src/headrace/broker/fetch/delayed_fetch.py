"""A fetch that found too little waits here: for enough bytes, for its time, or for its peer to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from headrace.broker.fetch.watched_partition import FetchWatcher
from headrace.core.timers import Timed, TimerQueue
from headrace.network.event_loop import deferrer_of
from headrace.network.response import DelayedResponse

SLOTS_PER_SECOND: Final = 100
"""A fetch waits for its time, and for up to a hundredth of a second longer."""

NEXT_SLOT_SECONDS: Final = 1e-6


class FetchPurgatory(TimerQueue):
    """All delayed fetches of one broker, and when their time is over."""

    __slots__ = ("defer",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop, SLOTS_PER_SECOND)
        self.defer = deferrer_of(loop)

    def wake(self) -> None:
        """What clients may read has changed: whoever waits reads again, and is told."""
        for delayed in self:
            delayed.on_time()


class DelayedFetch(Timed):
    """Told when its partitions move. Answers once, and not at once but soon, so that appends that arrive
    together are answered together."""

    __slots__ = ("_answer", "_interest", "_is_finishing", "_missing_bytes", "_purgatory", "response")

    def __init__(
        self,
        watcher: FetchWatcher,
        missing_bytes: int,
        max_wait_ms: int,
        answer: Callable[[DelayedResponse], None],
        purgatory: FetchPurgatory,
        response: DelayedResponse | None = None,
    ) -> None:
        super().__init__()
        self._interest = watcher
        self._missing_bytes = missing_bytes
        self._answer = answer
        self._purgatory = purgatory
        self._is_finishing = False
        self.response = response or DelayedResponse(exclusive=True)
        self.response.on_abandon = self._leave
        # A follower with something new to ask for says so by sending it behind this one. A consumer has a
        # question that is more urgent to it than this: each task of Spark that reads to the end of a log asks
        # for the log's offsets behind the fetch that its client has sent ahead. Answers are in order, so it
        # would stand still for all of `fetch.max.wait.ms`.
        self.response.on_overtaken = self._finish_soon if watcher.as_replica else self._finish_in_next_slot
        if watcher.waiting is not None:
            watcher.waiting.finish()  # the same session over another connection: the old one is dead
        watcher.waiting = self
        purgatory.schedule(self, max_wait_ms / 1000)

    def on_more(self, size: int) -> None:
        self._missing_bytes -= size
        if self._missing_bytes <= 0 and not self._is_finishing:
            self._finish_soon()

    def _finish_soon(self) -> None:
        if not self._is_finishing:
            self._is_finishing = True
            self._purgatory.defer(self.finish)

    def _finish_in_next_slot(self) -> None:
        """Not at once, so that a peer that always has two of them under way is not answered in a circle as
        fast as the network goes."""
        if self.is_scheduled:
            self._purgatory.schedule(self, NEXT_SLOT_SECONDS)

    def finish(self) -> None:
        if self._leave():
            self._answer(self.response)

    def on_time(self) -> None:
        self.finish()

    def timer_name(self) -> str:
        return "a fetch whose time was over"

    def _leave(self) -> bool:
        """False if it has left before."""
        watcher = self._interest
        if watcher.waiting is not self:
            return False
        self._purgatory.cancel(self)
        watcher.waiting = None
        watcher.on_wait_over()
        return True

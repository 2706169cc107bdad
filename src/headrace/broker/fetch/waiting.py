"""A fetch that found too little waits here: for enough bytes, for its time, or for its peer to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from headrace.broker.fetch.wanted import Interest
from headrace.core.tasks import report
from headrace.network.answer import Pending
from headrace.network.event_loop import deferrer_of

SLOTS_PER_SECOND: Final = 100
"""A fetch waits for its time, and for up to a hundredth of a second longer."""


class WaitingFetches:
    """All of one broker, and when their time is over. One timer for many: under load thousands come and go
    in a second, and nearly all are answered long before."""

    __slots__ = ("_loop", "_members", "_slots", "defer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._members: dict[WaitingFetch, None] = {}
        self._slots: dict[int, dict[WaitingFetch, None]] = {}
        self.defer = deferrer_of(loop)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[WaitingFetch]:
        return iter(list(self._members))

    def add(self, fetch: WaitingFetch, seconds: float) -> int:
        """Its slot."""
        slot = int((self._loop.time() + seconds) * SLOTS_PER_SECOND) + 1
        late = self._slots.get(slot)
        if late is None:
            late = self._slots[slot] = {}
            self._loop.call_at(slot / SLOTS_PER_SECOND, self._expire, slot)
        late[fetch] = None
        self._members[fetch] = None
        return slot

    def discard(self, fetch: WaitingFetch, slot: int) -> bool:
        """False if it has left already."""
        if self._members.pop(fetch, fetch) is not None:
            return False
        late = self._slots.get(slot)
        if late is not None:
            late.pop(fetch, None)
        return True

    def hasten(self, fetch: WaitingFetch, slot: int) -> int:
        """Its time is over with the next slot: not at once, so that a peer that always has two of them under
        way is not answered in a circle as fast as the network goes."""
        if fetch not in self._members or slot <= int(self._loop.time() * SLOTS_PER_SECOND) + 1:
            return slot
        self.discard(fetch, slot)
        return self.add(fetch, 0.0)

    def _expire(self, slot: int) -> None:
        for fetch in self._slots.pop(slot, {}):
            try:
                fetch.finish()
            except Exception as error:  # of this one: those behind it have waited long enough as well
                report("a fetch whose time was over", error)


class WaitingFetch:
    """Told when its partitions move. Answers once, and not at once but soon, so that appends that arrive
    together are answered together."""

    __slots__ = ("_answer", "_due", "_interest", "_missing_bytes", "_slot", "_waiting", "pending")

    def __init__(
        self,
        interest: Interest,
        missing_bytes: int,
        max_wait_ms: int,
        answer: Callable[[Pending], None],
        waiting: WaitingFetches,
        pending: Pending | None = None,
    ) -> None:
        self._interest = interest
        self._missing_bytes = missing_bytes
        self._answer = answer
        self._waiting = waiting
        self._due = False
        self.pending = pending or Pending(exclusive=True)
        self.pending.on_abandon = self._leave
        # A follower with something new to ask for says so by sending it behind this one. A consumer has a
        # question that is more urgent to it than this: each task of Spark that reads to the end of a log asks
        # for the log's offsets behind the fetch that its client has sent ahead. Answers are in order, so it
        # would stand still for all of `fetch.max.wait.ms`.
        self.pending.on_overtaken = self._hurry if interest.as_replica else self._hasten
        if interest.waiting is not None:
            interest.waiting.finish()  # the same session over another connection: the old one is dead
        interest.waiting = self
        self._slot = waiting.add(self, max_wait_ms / 1000)

    def on_more(self, size: int) -> None:
        self._missing_bytes -= size
        if self._missing_bytes <= 0 and not self._due:
            self._due = True
            self._waiting.defer(self.finish)

    def _hurry(self) -> None:
        self.on_more(self._missing_bytes)

    def _hasten(self) -> None:
        self._slot = self._waiting.hasten(self, self._slot)

    def finish(self) -> None:
        if self._leave():
            self._answer(self.pending)

    def _leave(self) -> bool:
        """False if it has left before."""
        if not self._waiting.discard(self, self._slot):
            return False
        interest = self._interest
        if interest.waiting is self:
            interest.waiting = None
        interest.on_wait_over()
        return True

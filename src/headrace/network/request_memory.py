"""Who may hold how much of a request before it is whole. Pure: sockets and time are somebody else's.

A frame that arrives whole needs none of this. The rest is one budget in four parts:

    beginnings  what has been read and cannot be served yet: the first 64 KB of a frame, and whatever came
                behind a request that blocks. Never refused; when it is full, connections read only what they
                can serve or have memory for (`is_tight`).
    large       frames above 2 MB
    small       the other ones: large frames cannot starve them
    links       frames of other brokers: clients cannot starve them

Beyond its beginning a frame is read when all of it is reserved, in the order of arrival. So whoever has begun
can finish without anybody else, and nobody waits in a circle. Whoever stands still or is too slow while
others wait loses its connection (`overdue`), so that nobody waits for ever either.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Protocol

from headrace.core.memory import MemoryShare
from headrace.network.buffers import SHARED_BYTES

BEGINNING_BYTES: Final = 64 * 1024
"""Of a frame this much arrives before the rest is reserved: to announce a large one costs nobody anything."""
ALLOWANCE_BYTES: Final = 4 * 1024
"""A frame up to this size is always read: memory for it is never waited for."""
SMALL_BYTES: Final = 2 * 1024 * 1024
LEAST_PART_BYTES: Final = 4 * SHARED_BYTES
WINDOW_TICKS: Final = 5
"""A reserved frame must grow within this time while others wait, by `LEAST_PROGRESS_BYTES`."""
LEAST_PROGRESS_BYTES: Final = 64 * 1024
GRACE_TICKS: Final = 30
BYTES_PER_TICK: Final = 1024 * 1024
"""And it has to be whole after its grace and one more tick for each megabyte."""


class Holder(Protocol):
    """Whose frame it is."""

    def on_memory(self) -> None:
        """What it waited for is reserved."""

    def arrived_bytes(self) -> int:
        """Of the frame, read or readable."""

    def on_overdue(self) -> None:
        """It has held for too long what others wait for."""


class Claim:
    """One frame's reservation, granted or waited for."""

    __slots__ = ("due_tick", "holder", "is_granted", "pool", "seen_bytes", "seen_tick", "size")

    def __init__(self, holder: Holder, size: int, pool: Pool) -> None:
        self.holder = holder
        self.size = size
        self.pool = pool
        self.is_granted = False
        self.due_tick = self.seen_tick = self.seen_bytes = 0


class Pool:
    """Invariant: `used_bytes` is the sum of the granted claims, and never above `limit_bytes`."""

    __slots__ = ("granted", "limit_bytes", "used_bytes", "waiting")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.granted: dict[Claim, None] = {}
        self.waiting: OrderedDict[Claim, None] = OrderedDict()
        """In the order of arrival."""


class RequestMemory:
    __slots__ = (
        "_beginnings_limit",
        "_large",
        "_links",
        "_small",
        "beginnings_bytes",
        "is_tight",
        "share",
        "tick",
    )

    def __init__(self, share: MemoryShare, max_frame_bytes: int) -> None:
        limit = share.limit_bytes
        self._large = Pool(max(limit // 2, max_frame_bytes))
        self._small = Pool(max(limit // 4, min(SMALL_BYTES, max_frame_bytes)))
        eighth = max(limit // 8, LEAST_PART_BYTES)
        self._links = Pool(eighth)
        self._beginnings_limit = eighth
        share.limit_bytes = self._large.limit_bytes + self._small.limit_bytes + 2 * eighth
        self.share = share
        """What all parts use. Invariant: the sum of the claims that are granted, and of the beginnings."""
        self.beginnings_bytes = 0
        self.is_tight = False
        """One more read could bring more than there is room for: read nothing that cannot be served."""
        self.tick = 0
        self._judge()

    # --- beginnings ------------------------------------------------------------------------------------

    def keep(self, size: int) -> None:
        self.beginnings_bytes += size
        self.share.take(size)
        self._judge()

    def drop(self, size: int) -> None:
        self.beginnings_bytes -= size
        self.share.give(size)
        self._judge()

    def _judge(self) -> None:
        self.is_tight = self.beginnings_bytes + SHARED_BYTES > self._beginnings_limit

    # --- whole frames ----------------------------------------------------------------------------------

    def claim(self, holder: Holder, size: int, *, is_link: bool = False) -> Claim:
        """Reserve a whole frame, now or later: `holder.on_memory` is called if it is later."""
        if is_link and size <= self._links.limit_bytes:
            pool = self._links
        else:
            pool = self._small if size <= SMALL_BYTES else self._large
        claim = Claim(holder, size, pool)
        if pool.waiting or pool.used_bytes + size > pool.limit_bytes:
            self.share.refusals += 1
            pool.waiting[claim] = None
        else:
            self._grant(claim)
        return claim

    def release(self, claim: Claim) -> None:
        """The frame is served, or its connection is gone."""
        pool = claim.pool
        if not claim.is_granted:
            pool.waiting.pop(claim, None)
        elif pool.granted.pop(claim, claim) is None:
            pool.used_bytes -= claim.size
            self.share.give(claim.size)
        self._serve(pool)

    def _grant(self, claim: Claim) -> None:
        pool = claim.pool
        pool.used_bytes += claim.size
        pool.granted[claim] = None
        self.share.take(claim.size)
        claim.is_granted = True
        claim.seen_tick, claim.seen_bytes = self.tick, claim.holder.arrived_bytes()
        claim.due_tick = self.tick + GRACE_TICKS + claim.size // BYTES_PER_TICK

    def _serve(self, pool: Pool) -> None:
        """In the order in which they came: one that needs much is not passed by those that need little."""
        waiting = pool.waiting
        while waiting:
            claim = next(iter(waiting))
            if pool.used_bytes + claim.size > pool.limit_bytes:
                return
            waiting.popitem(last=False)
            self._grant(claim)
            claim.holder.on_memory()

    # --- those who hold up the others ------------------------------------------------------------------

    @property
    def waiting_count(self) -> int:
        return len(self._large.waiting) + len(self._small.waiting) + len(self._links.waiting)

    def overdue(self, tick: int) -> list[Claim]:
        """Granted claims that others wait for and that have not grown enough, or are past their time."""
        self.tick = tick
        return [
            claim
            for pool in (self._large, self._small, self._links)
            if pool.waiting
            for claim in list(pool.granted)
            if self._is_overdue(claim, tick)
        ]

    def _is_overdue(self, claim: Claim, tick: int) -> bool:
        if tick - claim.seen_tick < WINDOW_TICKS:
            return False
        if tick >= claim.due_tick:
            return True
        arrived = claim.holder.arrived_bytes()
        grown, claim.seen_bytes, claim.seen_tick = arrived - claim.seen_bytes, arrived, tick
        return grown < LEAST_PROGRESS_BYTES

    def claims(self) -> Iterator[Claim]:
        for pool in (self._large, self._small, self._links):
            yield from pool.granted
            yield from pool.waiting

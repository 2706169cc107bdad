"""When the time of held produce requests is over. One timer for many: they come by the thousand, and nearly
all are answered long before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from headrace.core.tasks import report

if TYPE_CHECKING:
    from headrace.broker.held_produce import HeldProduce

SLOTS_PER_SECOND: Final = 10
"""A request waits for its time, and for up to a tenth of a second longer."""
HELD_BYTES: Final = 2500
"""Of one partition, with its places in the tables of those who wait for it."""
UNLIMITED_BYTES: Final = 2**63 - 1


class HeldProduces:
    __slots__ = ("_count", "_loop", "_most", "_slots")

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int = UNLIMITED_BYTES) -> None:
        self._loop = loop
        self._most = limit_bytes // HELD_BYTES
        self._slots: dict[int, dict[HeldProduce, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Then a connection waits with its next request for the answer to this one: so each holds one more at
        the most, however many it has sent."""
        return self._count >= self._most

    def add(self, held: HeldProduce, timeout_ms: int) -> None:
        now = self._loop.time()
        slot = int((now + max(timeout_ms, 0) / 1000) * SLOTS_PER_SECOND) + 1
        members = self._slots.get(slot)
        if members is None:
            members = self._slots[slot] = {}
            self._loop.call_at(slot / SLOTS_PER_SECOND, self._expire, slot)
        members[held] = None
        held.slot = slot
        self._count += 1

    def discard(self, held: HeldProduce) -> None:
        members = self._slots.get(held.slot)
        if members is not None and members.pop(held, held) is None:
            self._count -= 1

    def _expire(self, slot: int) -> None:
        late = self._slots.pop(slot, {})
        self._count -= len(late)
        for held in late:
            try:
                held.on_timeout()
            except Exception as error:  # of this one: those behind it are answered all the same
                report("a produce request whose time was over", error)

"""Produce requests whose answer is delayed, and when their time is over."""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.core.timers import TimerQueue

SLOTS_PER_SECOND: Final = 10
"""A request waits for its time, and for up to a tenth of a second longer."""
DELAYED_BYTES: Final = 2500
"""Of one partition, with its places in the tables of those who wait for it."""
UNLIMITED_BYTES: Final = 2**63 - 1


class ProducePurgatory(TimerQueue):
    __slots__ = ("_most",)

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int = UNLIMITED_BYTES) -> None:
        super().__init__(loop, SLOTS_PER_SECOND)
        self._most = limit_bytes // DELAYED_BYTES

    @property
    def is_full(self) -> bool:
        """Then a connection waits with its next request for the answer to this one: so each holds one more at
        the most, however many it has sent."""
        return len(self) >= self._most

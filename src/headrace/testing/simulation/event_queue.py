"""Virtual time for what needs no event loop: callbacks at their moments, and a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from headrace.testing.simulation.clock import BEGINNING_MS


class EventQueue:
    def __init__(self) -> None:
        self.now_ms = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbered = 0

    def wall_ms(self) -> int:
        return BEGINNING_MS + self.now_ms

    def after(self, delay_ms: int, event: Callable[[], None]) -> None:
        """Events of one moment happen in the order in which they were set."""
        self._numbered += 1
        heappush(self._events, (self.now_ms + delay_ms, self._numbered, event))

    def run_next(self) -> bool:
        """False if nothing is left to happen."""
        if not self._events:
            return False
        self.now_ms, _, event = heappop(self._events)
        event()
        return True

    def run_until(self, moment_ms: int) -> None:
        while self._events and self._events[0][0] <= moment_ms:
            self.run_next()
        self.now_ms = max(self.now_ms, moment_ms)

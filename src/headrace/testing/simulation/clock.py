"""The clocks of one simulated host: a monotonic one that begins anywhere, a wall clock that may be wrong."""

from __future__ import annotations

from typing import Final

from headrace.testing.simulation.virtual_loop import ProcessLoop

BEGINNING_MS: Final = 1_700_000_000_000


class SimulatedClock:
    __slots__ = ("_loop", "skew_ms")

    def __init__(self, loop: ProcessLoop, skew_ms: int = 0) -> None:
        self._loop = loop
        self.skew_ms = skew_ms
        """How far the wall clock is off. A jump is a change of it; the monotonic clock does not notice."""

    def wall_ms(self) -> int:
        return BEGINNING_MS + self.skew_ms + int(self._loop.scheduler.now * 1000)

    def monotonic(self) -> float:
        return self._loop.time()

"""How much the state of a coordinator takes, without counting at each change of it.

Whatever is let in or loaded is added; what goes is not subtracted. When the sum reaches the limit, the state
is measured and the sum starts from there, at most once in a while. So the sum errs on the safe side, and
counting costs the coordinators nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.core.memory import MemoryShare

MEASURE_SECONDS: Final = 1.0
"""To measure a hundred thousand members takes a tenth of a second."""


class StateEstimate:
    __slots__ = ("_measure", "_measured_at", "_now", "share")

    def __init__(self, share: MemoryShare, measure: Callable[[], int], now: Callable[[], float]) -> None:
        self.share = share
        self._measure = measure
        self._now = now
        self._measured_at = -MEASURE_SECONDS

    def admits(self, size: int) -> bool:
        """Whether there is room for this much more state. It is counted then."""
        share = self.share
        if not share.has_room(size):
            self._measure_again()
            if not share.has_room(size):
                share.refusals += 1
                return False
        share.take(size)
        return True

    def _measure_again(self) -> None:
        now = self._now()
        if now - self._measured_at >= MEASURE_SECONDS:
            self._measured_at = now
            self.correct(self._measure())

    def correct(self, size: int) -> None:
        self.share.used_bytes = size

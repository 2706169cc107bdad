"""How much somebody has used lately, and how long they have to wait until it is within their quota.

As Kafka measures it: the sum of the last windows over their time, and never over less than all but one of
them, so that a burst after a rest is not taken for a rate.
"""

from __future__ import annotations

from typing import Final

WINDOWS: Final = 11
"""The current one, and ten that are over: `quota.window.num`."""
WINDOW_MS: Final = 1000
"""`quota.window.size.seconds`."""


class Meter:
    """One quantity of one entity. Time never goes back."""

    __slots__ = ("_amounts", "_newest", "_total")

    def __init__(self, now_ms: int) -> None:
        self._amounts = [0.0] * WINDOWS
        self._newest = now_ms // WINDOW_MS
        self._total = 0.0
        """Invariant: the sum of `_amounts`."""

    def record(self, amount: float, now_ms: int) -> None:
        self._roll(now_ms)
        self._amounts[self._newest % WINDOWS] += amount
        self._total += amount

    def rate(self, now_ms: int) -> float:
        """Per second."""
        self._roll(now_ms)
        return self._total * 1000 / self._elapsed_ms(now_ms)

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long to use nothing until the rate is within the bound; 0 if it is."""
        rate = self.rate(now_ms)
        if rate <= bound:
            return 0
        return round((rate - bound) / bound * self._elapsed_ms(now_ms)) if bound > 0 else WINDOWS * WINDOW_MS

    def _elapsed_ms(self, now_ms: int) -> int:
        """Whole windows before the current one, and what has passed of that."""
        return (WINDOWS - 1) * WINDOW_MS + now_ms % WINDOW_MS

    def _roll(self, now_ms: int) -> None:
        window = now_ms // WINDOW_MS
        passed = window - self._newest
        if passed <= 0:
            return
        for each in range(self._newest + 1, self._newest + 1 + min(passed, WINDOWS)):
            place = each % WINDOWS
            self._total -= self._amounts[place]
            self._amounts[place] = 0.0
        if passed >= WINDOWS:
            self._total = 0.0  # without what rounding has left
        self._newest = window

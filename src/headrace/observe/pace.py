"""How often a cluster is looked at, and when a look under way is told of as late."""

from __future__ import annotations

from typing import Final

REST: Final = 4.0
"""Times what a look took: of a huge cluster looks are fewer, and never more than a fifth of the time."""
LATE_SECONDS: Final = 3.0
LATE: Final = 3.0
"""Times what the last whole look took."""


class Pace:
    def __init__(self, interval_seconds: float) -> None:
        self._interval = interval_seconds
        self._usual = 0.0

    def rest(self, took: float, *, is_whole: bool) -> float:
        """Seconds until the next look. One that brokers left without an answer has waited, which costs nobody
        anything: it is not paid for with a rest in which nobody sees that they are back."""
        if is_whole:
            self._usual = took
            return max(self._interval - took, REST * took)
        return max(self._interval, REST * self._usual)

    def is_late(self, under_way: float) -> bool:
        return under_way > max(LATE_SECONDS, LATE * self._usual)

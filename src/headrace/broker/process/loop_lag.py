"""Measures how late the event loop is. It serves everybody, so whatever holds it up holds up everybody."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from headrace.metrics.histogram import BUCKETS, LatencyHistogram, quantiles_us

if TYPE_CHECKING:
    from headrace.broker.runtime.health_report import HealthReport

EVERY_SECONDS: Final = 0.1
EVERY_US: Final = 100_000
WINDOW: Final = 300
"""Timers in each of the two halves of what counts as recent: half a minute."""
FEWEST: Final = 100
"""Of fewer timers nothing is said: a start is no habit."""
BAD_MS: Final = 250
"""Above that clients notice, and a few times as much makes brokers look dead to each other."""


class RecentLag:
    """The lag of the last half to whole minute, as somebody sees it who comes at any moment.

    A loop that hangs for five seconds misses one timer by that much, and fifty comers by that much or less.
    So a timer that was missed counts for all that would have been due meanwhile.
    """

    def __init__(self) -> None:
        self._older = [0] * BUCKETS
        self._newer = [0] * BUCKETS
        self._noted = 0

    def note(self, lag_us: int) -> None:
        newer = self._newer
        for each in range(lag_us, max(lag_us - WINDOW * EVERY_US, -1), -EVERY_US):
            newer[min(each.bit_length(), BUCKETS - 1)] += 1
            self._noted += 1
        if self._noted >= WINDOW:
            self._older, self._newer, self._noted = newer, [0] * BUCKETS, 0

    def p99_ms(self) -> int | None:
        """None: too little was seen."""
        counts = [older + newer for older, newer in zip(self._older, self._newer, strict=True)]
        return int(quantiles_us(counts, (0.99,))[0] / 1000) if sum(counts) >= FEWEST else None


class LoopLag:
    """A timer that notes by how much it was missed: that costs nothing, and sees all that lasts longer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lag: LatencyHistogram) -> None:
        self._loop = loop
        self._lag = lag
        self._recent = RecentLag()
        self._timer: asyncio.TimerHandle | None = None

    def report_to(self, health: HealthReport) -> None:
        health.add("loop.lag.p99.ms", self._recent.p99_ms, _P99)
        health.add("problem.loop", self._problem, _BAD)

    def start(self) -> None:
        due = self._loop.time() + EVERY_SECONDS
        self._timer = self._loop.call_at(due, self._note, due)

    def _note(self, due: float) -> None:
        lag_us = max(int((self._loop.time() - due) * 1_000_000), 0)
        self._lag.observe(lag_us)
        self._recent.note(lag_us)
        self.start()

    def _problem(self) -> str | None:
        late_ms = self._recent.p99_ms()
        if late_ms is None or late_ms <= BAD_MS:
            return None
        return (
            f"its event loop is late: {late_ms / 1000:.2g} s or more for one request in a hundred; if its"
            " processor is busy or taken away (top: us, st), give it another or move leaders away with"
            " `headrace cluster rebalance`"
        )

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


_P99: Final = "how late the event loop is for one comer in a hundred, in the last minute"
_BAD: Final = f"that the loop is late by more than {BAD_MS} ms for one comer in a hundred"

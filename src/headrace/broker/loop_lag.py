"""Measures how late the event loop is. It serves everybody, so whatever holds it up holds up everybody."""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.metrics.histogram import LatencyHistogram

EVERY_SECONDS: Final = 0.1


class LoopLag:
    """A timer that notes by how much it was missed: that costs nothing, and sees all that lasts longer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lag: LatencyHistogram) -> None:
        self._loop = loop
        self._lag = lag
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        due = self._loop.time() + EVERY_SECONDS
        self._timer = self._loop.call_at(due, self._note, due)

    def _note(self, due: float) -> None:
        self._lag.observe(max(int((self._loop.time() - due) * 1_000_000), 0))
        self.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

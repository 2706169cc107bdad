"""The log of what peers do wrong: a peer decides how often that is, so the lines are limited."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from headrace.broker.runtime.event_limiter import WINDOW_SECONDS, EventLimiter
from headrace.core.timers import Timer, TimerQueue

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger


LONGEST_TEXT: Final = 200


def shortened(text: str | None) -> str | None:
    """A client id may be 32 KB long."""
    return text if text is None or len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "..."


class PeerLog:
    def __init__(self, loop: asyncio.AbstractEventLoop, log: BoundLogger) -> None:
        self._loop = loop
        self._timers = TimerQueue(loop)
        self._log = log
        self._limiter = EventLimiter()
        self._timer: Timer | None = None

    def warning(self, event: str, source: str, **fields: Any) -> None:
        if self._allows(event, source):
            self._log.warning(event, peer=source, **fields)

    def error(self, event: str, source: str, **fields: Any) -> None:
        if self._allows(event, source):
            self._log.error(event, peer=source, **fields)

    def _allows(self, event: str, source: str) -> bool:
        now = self._loop.time()
        self._tell(now)
        is_allowed = self._limiter.allows(event, source, now)
        if not is_allowed and self._timer is None:
            self._timer = self._timers.after(WINDOW_SECONDS, "the count of suppressed lines", self._on_timer)
        return is_allowed

    def _on_timer(self) -> None:
        self._timer = None
        self._tell(self._loop.time())

    def _tell(self, now: float) -> None:
        for event, lines, sources in self._limiter.over(now):
            self._log.warning(
                "similar events suppressed", suppressed_event=event, suppressed=lines, sources=sources
            )

    def stop(self) -> None:
        """Say what was not said."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tell(self._loop.time() + WINDOW_SECONDS)

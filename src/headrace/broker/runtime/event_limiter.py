"""Bounds the log lines that a peer can cause at will, by event and by source. Pure: time is an argument.

A line for each refused frame fills a disk as fast as frames can be sent. In each minute the first few of an
event and a source are written, and of an event not many more from all sources. The rest is counted, and the
count is written when the minute is over.
"""

from __future__ import annotations

from typing import Final, NamedTuple

WINDOW_SECONDS: Final = 60.0
LINES_PER_SOURCE: Final = 5
LINES_PER_EVENT: Final = 50


class Suppressed(NamedTuple):
    event: str
    lines: int
    sources: int


class _Window:
    __slots__ = ("lines", "sources", "suppressed")

    def __init__(self) -> None:
        self.lines = 0
        self.suppressed = 0
        self.sources: dict[str, int] = {}
        """Lines of each, of at most LINES_PER_EVENT sources: what the others do is not written anyway."""


class EventLimiter:
    __slots__ = ("_began", "_windows")

    def __init__(self) -> None:
        self._began = 0.0
        self._windows: dict[str, _Window] = {}

    def allows(self, event: str, source: str, now: float) -> bool:
        """Whether to write the line. Before that, write what `over` gives."""
        if not self._windows:
            self._began = now
        window = self._windows.get(event)
        if window is None:
            window = self._windows[event] = _Window()
        lines = window.sources.get(source, 0)
        if lines >= LINES_PER_SOURCE or window.lines >= LINES_PER_EVENT:
            window.suppressed += 1
            return False
        window.sources[source] = lines + 1
        window.lines += 1
        return True

    @property
    def is_suppressing(self) -> bool:
        return any(window.suppressed for window in self._windows.values())

    def over(self, now: float) -> list[Suppressed]:
        """What was not written, once the minute is over; nothing before that."""
        if now - self._began < WINDOW_SECONDS:
            return []
        windows, self._windows = self._windows, {}
        return [
            Suppressed(event, window.suppressed, len(window.sources))
            for event, window in windows.items()
            if window.suppressed
        ]

"""Figures of the health report that every broker has: its version, its age, and how fast its logs grow."""

from __future__ import annotations

from collections import deque
from typing import Final

from headrace import __version__
from headrace.broker.runtime.runtime import Runtime
from headrace.config.health import growth_of
from headrace.core.timers import Timer
from headrace.log.manager import LogManager

SAMPLE_SECONDS: Final = 600.0
SAMPLES: Final = 145
"""A day of them: days differ from nights."""
LEAST_SECONDS: Final = 3600.0
"""What is seen in less says nothing of a day."""
_DAY_SECONDS: Final = 86_400.0


class Growth:
    """How much something grows in a day, retention and compaction included."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=SAMPLES)

    def note(self, seconds: float, size: int) -> None:
        self._samples.append((seconds, size))

    def per_day(self) -> int | None:
        """None until enough was seen."""
        if not self._samples:
            return None
        (began, before), (now, size) = self._samples[0], self._samples[-1]
        if now - began < LEAST_SECONDS:
            return None
        return int((size - before) / (now - began) * _DAY_SECONDS)


class Figures:
    def __init__(self, runtime: Runtime, logs: LogManager) -> None:
        self._runtime = runtime
        self._logs = logs
        self._started = runtime.clock.monotonic()
        self._growth = {directory.path: Growth() for directory in logs.directories}
        self._timer: Timer | None = None
        report = runtime.health
        report.add("version", lambda: __version__, "Of Headrace.")
        report.add("uptime.seconds", self._uptime, "Since the broker was ready.")
        for path, growth in self._growth.items():
            report.add(growth_of(path), growth.per_day, f"Bytes a day by which the logs in {path} grow.")
        self._sample()

    def _uptime(self) -> int:
        return int(self._runtime.clock.monotonic() - self._started)

    def _sample(self) -> None:
        sizes = dict.fromkeys(self._growth, 0)
        for log in self._logs.logs.values():
            sizes[log.directory.path] += log.size_bytes
        now = self._runtime.clock.monotonic()
        for path, size in sizes.items():
            self._growth[path].note(now, size)
        self._timer = self._runtime.timers.after(SAMPLE_SECONDS, "a sample of figures", self._sample)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

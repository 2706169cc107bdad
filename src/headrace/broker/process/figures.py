"""Figures of the health report that every broker has: its version and age, what time it has, how many
descriptors it may open, and how fast its logs grow."""

from __future__ import annotations

import asyncio
import os
import resource
from collections import deque
from typing import Final

from headrace import __version__
from headrace.broker.runtime.runtime import Runtime
from headrace.config.health import (
    BUILD,
    CLOCK_MS,
    DESCRIPTORS_LIMIT,
    DESCRIPTORS_OPEN,
    STARTED_MS,
    VERSION,
    growth_of,
)
from headrace.core.build import this_build
from headrace.core.timers import Timer
from headrace.log.manager import LogManager

SAMPLE_SECONDS: Final = 600.0
SAMPLES: Final = 145
"""A day of them: days differ from nights."""
LEAST_SECONDS: Final = 3600.0
"""What is seen in less says nothing of a day."""
_DAY_SECONDS: Final = 86_400.0
_OPEN_DESCRIPTORS: Final = "/proc/self/fd"


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
        self._started_ms = runtime.clock.wall_ms()
        self._descriptors: int | None = None
        build = this_build().kind
        report = runtime.health
        report.look_first(self._count_descriptors)
        report.add(VERSION, lambda: __version__, "Of Headrace.")
        report.add(BUILD, lambda: build, "compiled or plain.")
        report.add("uptime.seconds", self._uptime, "Since the broker was ready.")
        report.add(STARTED_MS, lambda: self._started_ms, "When the broker was ready, by its clock.")
        report.add(CLOCK_MS, runtime.clock.wall_ms, "What time it is, by the broker's clock.")
        report.add(DESCRIPTORS_OPEN, lambda: self._descriptors, "Files and connections that are open.")
        report.add(DESCRIPTORS_LIMIT, _descriptor_limit, "How many may be.")
        for path, growth in self._growth.items():
            report.add(growth_of(path), growth.per_day, f"Bytes a day by which the logs in {path} grow.")
        self._sample()

    async def _count_descriptors(self) -> None:
        """Of a hundred thousand this takes a while, so the loop does not wait for it."""
        try:
            self._descriptors = await asyncio.to_thread(lambda: len(os.listdir(_OPEN_DESCRIPTORS)))
        except OSError:
            self._descriptors = None  # no /proc, or no descriptor left to read it with

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


def _descriptor_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]

"""Keeps Python's cyclic garbage collector from holding up a broker that holds much.

A full collection looks at every object there is, and the loop stands still meanwhile: for hundreds of
milliseconds with thousands of partitions and groups. Nearly all of what it looks at lives on. So the
survivors of one that took long are frozen: those after it pass over them.

What is frozen and becomes garbage stays, if it is part of a cycle; all else goes at once, as ever. So that
this has a bound, all is thawed and looked at after a while, or when many partitions have gone, and until then
only so many times anything is frozen.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from headrace.core.timers import Timer, TimerQueue

LONG_SECONDS: Final = 0.02
"""Of the processor. A collection that takes longer is not to come again soon."""
THAW_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 10.0
MOST_FREEZES: Final = 10
"""Between two thaws. Each adds what lived when it was taken, and no more."""
MANY_GONE: Final = 1000
_OLDEST: Final = 2


class Collector:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        count_partitions: Callable[[], int],
        long_seconds: float = LONG_SECONDS,
    ) -> None:
        self._loop = loop
        self._timers = TimerQueue(loop)
        self._count_partitions = count_partitions
        self._long_seconds = long_seconds
        self._began = 0.0
        self._freezes = 0
        self._thawed_at = 0.0
        self._most_partitions = 0
        """Since the last thaw."""
        self._timer: Timer | None = None

    def start(self) -> None:
        """What exists now lives as long as the broker, mostly."""
        gc.callbacks.append(self._on_collection)
        self._begin_anew()
        self._look_later()

    def stop(self) -> None:
        """What is frozen stays so: the process ends, and need not look at all of it once more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, info: Mapping[str, Any]) -> None:
        """Called by the collector, in whatever thread it runs."""
        if info["generation"] != _OLDEST:
            return
        if phase == "start":
            self._began = time.thread_time()
        elif time.thread_time() - self._began > self._long_seconds and self._freezes < MOST_FREEZES:
            self._freeze()  # here and now: whatever is made later is not known to live

    def _freeze(self) -> None:
        self._freezes += 1
        gc.freeze()

    def _begin_anew(self) -> None:
        """Collect what has become garbage since it was frozen. This takes long, once in a long while."""
        gc.unfreeze()
        self._freezes = MOST_FREEZES  # not in the middle of this
        gc.collect()
        gc.freeze()
        self._freezes = 1
        self._thawed_at = self._loop.time()
        self._most_partitions = self._count_partitions()

    def _look_later(self) -> None:
        self._timer = self._timers.after(LOOK_SECONDS, "the look at the garbage collector", self._look)

    def _look(self) -> None:
        count = self._count_partitions()
        self._most_partitions = max(self._most_partitions, count)
        gone = self._most_partitions - count
        is_old = self._loop.time() - self._thawed_at >= THAW_SECONDS
        if gone >= MANY_GONE or (is_old and (gone or self._freezes > 1)):
            self._begin_anew()
        self._look_later()

"""The timers of one shard: one heap, and one timer of the loop for the next of them.

A heartbeat moves the end of a session by the thousand a second, nearly always to a later time. Such a move
only changes a number. The place in the heap stays, and is looked at again when its old time comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final

from headrace.coordinators.decision import Decision
from headrace.core.tasks import report

Run = Callable[[], Decision[Any]]

WASTE: Final = 64
"""So many places of timers that are gone are put up with, and as many as there are timers."""


class _Timer:
    __slots__ = ("due", "name", "operation", "queued")

    def __init__(self, name: object, due: float, operation: Run) -> None:
        self.name = name
        self.due = due
        self.queued = due
        """When its place in the heap comes up; a place of another time is not its own any more."""
        self.operation = operation


class ShardTimers:
    """Invariant: every timer has exactly one place in the heap that is its own, not after it is due."""

    __slots__ = ("_armed", "_armed_for", "_heap", "_loop", "_on_due", "_sequence", "_timers")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_due: Callable[[object, Run], None]) -> None:
        self._loop = loop
        self._on_due = on_due
        self._timers: dict[object, _Timer] = {}
        self._heap: list[tuple[float, int, _Timer]] = []
        self._sequence = 0
        self._armed: asyncio.TimerHandle | None = None
        self._armed_for = 0.0

    def __len__(self) -> int:
        return len(self._timers)

    def set(self, name: object, delay_ms: float, operation: Run) -> None:
        due = self._loop.time() + max(delay_ms, 0.0) / 1000
        timer = self._timers.get(name)
        if timer is not None and timer.queued <= due:
            timer.due = due
            timer.operation = operation
            return
        if timer is None:
            timer = self._timers[name] = _Timer(name, due, operation)
        else:
            timer.due = timer.queued = due
            timer.operation = operation
        self._push(timer)
        if len(self._heap) > 2 * len(self._timers) + WASTE:
            self._tidy()
        self._arm()

    def cancel(self, name: object) -> None:
        self._timers.pop(name, None)

    def stop(self) -> None:
        self._timers.clear()
        self._heap.clear()
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def _push(self, timer: _Timer) -> None:
        self._sequence += 1
        heappush(self._heap, (timer.queued, self._sequence, timer))

    def _owns(self, place: tuple[float, int, _Timer]) -> bool:
        timer = place[2]
        return self._timers.get(timer.name) is timer and timer.queued == place[0]

    def _tidy(self) -> None:
        self._heap = [place for place in self._heap if self._owns(place)]
        heapify(self._heap)

    def _arm(self) -> None:
        if not self._heap:
            return
        first = self._heap[0][0]
        if self._armed is not None:
            if self._armed_for <= first:
                return
            self._armed.cancel()
        self._armed_for = first
        self._armed = self._loop.call_at(first, self._fire)

    def _fire(self) -> None:
        self._armed = None
        now = self._loop.time()
        due: list[_Timer] = []
        while self._heap and self._heap[0][0] <= now:
            place = heappop(self._heap)
            if not self._owns(place):
                continue
            timer = place[2]
            if timer.due > now:
                timer.queued = timer.due
                self._push(timer)
            else:
                due.append(timer)
        for timer in due:
            # One of them may have cancelled or moved another.
            if self._timers.get(timer.name) is timer and timer.due <= now:
                del self._timers[timer.name]
                try:
                    self._on_due(timer.name, timer.operation)
                except Exception as error:  # of this one: the others keep their places, and their times
                    report(f"the timer {timer.name!r} of a coordinator", error)
            elif self._timers.get(timer.name) is timer:
                timer.queued = timer.due
                self._push(timer)
        self._arm()

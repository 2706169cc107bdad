"""Things that rest until their time has come, with one timer for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from headrace.core.ports import Clock


class Rests(Protocol):
    rests_until: float


class Resting:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, on_rested: Callable[[list[Any]], None]
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._on_rested = on_rested
        self._members: dict[Any, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def __len__(self) -> int:
        return len(self._members)

    def add(self, one: Rests, seconds: float) -> None:
        now = self._clock.monotonic()
        one.rests_until = now + seconds
        self._members[one] = None
        if self._timer is None or one.rests_until < self._due:
            self._arm(one.rests_until, now)

    def remove(self, one: Rests) -> None:
        self._members.pop(one, None)

    def clear(self) -> None:
        self._members.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, due: float, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(max(due - now, 0.0), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        rested = [one for one in self._members if one.rests_until <= now]
        for one in rested:
            del self._members[one]
        if self._members:
            self._arm(min(one.rests_until for one in self._members), now)
        if rested:
            self._on_rested(rested)

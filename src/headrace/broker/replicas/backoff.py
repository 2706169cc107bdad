"""Those who back off after a failure, until their time is over. Those whose time is over together are given
back together: after the loss of a leader that can be thousands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from headrace.core.timers import Timed, TimerQueue

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig

FIRST_BACKOFF: Final = 0.02
"""After the first failure of a partition: mostly the leader has only yet to hear that it leads."""


def rest_seconds(failures: int, config: BrokerConfig) -> float:
    """How long a follower lets its leader be after one failure more than `failures`."""
    longest: float = config.replica_fetch_backoff_ms / 1000
    return min(FIRST_BACKOFF * 2.0 ** min(failures, 16), longest)


class Backoffs:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, timers: TimerQueue, on_over: Callable[[list[Any]], None]
    ) -> None:
        self._loop = loop
        self._timers = timers
        self._on_over = on_over
        self._members: dict[Any, _Backoff] = {}
        self._over: dict[Any, None] = {}
        """To be given back at the end of this turn."""

    def __len__(self) -> int:
        return len(self._members) + len(self._over)

    def add(self, member: Any, seconds: float) -> None:
        self._over.pop(member, None)
        backoff = self._members.get(member)
        if backoff is None:
            backoff = self._members[member] = _Backoff(self, member)
        self._timers.schedule(backoff, seconds)

    def remove(self, member: Any) -> None:
        self._over.pop(member, None)
        backoff = self._members.pop(member, None)
        if backoff is not None:
            self._timers.cancel(backoff)

    def clear(self) -> None:
        for member in list(self._members):
            self.remove(member)
        self._over.clear()

    def on_time(self, member: Any) -> None:
        del self._members[member]
        if not self._over:
            self._loop.call_soon(self._give_back)
        self._over[member] = None

    def _give_back(self) -> None:
        over, self._over = self._over, {}
        if over:
            self._on_over(list(over))


class _Backoff(Timed):
    __slots__ = ("_backoffs", "_member")

    def __init__(self, backoffs: Backoffs, member: Any) -> None:
        super().__init__()
        self._backoffs = backoffs
        self._member = member

    def on_time(self) -> None:
        self._backoffs.on_time(self._member)

    def timer_name(self) -> str:
        return "the end of a backoff"

"""The one link of a fetcher, with one fetch in flight at most. A watchdog looks at it each second, so that no
request needs a timer; whoever rests is woken when there is something new to ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final

from headrace.broker.replicas.fetch_requests import NUDGE, ignore
from headrace.core.ports_network import Link
from headrace.core.timers import Timer
from headrace.network.direct_link import DirectLink

if TYPE_CHECKING:
    from headrace.broker.runtime.runtime import Runtime

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
"""Seconds between two attempts to reach a leader."""
WATCH_SECONDS = 1.0  # not final: tests are less patient


class FetchWire:
    def __init__(self, runtime: Runtime, watchdog: str) -> None:
        self.link: Link | None = None
        self.was_silent = False
        """The last link was closed because its answer was overdue."""
        self._runtime = runtime
        self._watchdog_name = watchdog
        self._watchdog: Timer | None = None
        self._wake = asyncio.Event()
        self._answer_due = inf
        """When the awaited answer is overdue; infinite while no answer is awaited."""
        self._nudged = False

    def watch(self) -> None:
        self._watchdog = self._runtime.timers.after(WATCH_SECONDS, self._watchdog_name, self._on_watch)

    def unwatch(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()

    def _on_watch(self) -> None:
        self.watch()
        if self._runtime.clock.monotonic() > self._answer_due and self.link is not None:
            self.was_silent = True
            self._answer_due = inf
            self.link.close()  # whoever awaits the answer is told

    def begin(self) -> None:
        """A link is to be made."""
        self._answer_due = inf
        self.was_silent = False

    def close(self) -> None:
        if self.link is not None:
            self.link.close()
            self.link = None

    def expect(self, seconds: float) -> None:
        """A fetch goes out now, and its answer is overdue after `seconds`."""
        self._nudged = False
        self._answer_due = self._runtime.clock.monotonic() + seconds

    async def exchange(
        self, link: Link, frame: bytes, follow_up: Callable[[memoryview], bytes | None]
    ) -> memoryview:
        """Send requests as long as `follow_up` returns the next one. Return the last answer."""
        if isinstance(link, DirectLink):
            answer = await link.exchange(frame, follow_up)
        else:
            answer = await link.send(frame)
            while (following := follow_up(answer)) is not None:
                answer = await link.send(following)
        self._answer_due = inf
        return answer

    async def rest(self, seconds: float | None) -> None:
        """Until somebody wakes, or for so many seconds."""
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    def wake(self) -> None:
        self._wake.set()

    def hurry(self) -> None:
        """There is more to fetch than the request in flight asks for: make the leader answer that one now."""
        self._wake.set()
        link = self.link
        if link is not None and link.is_open and self._answer_due < inf and not self._nudged:
            self._nudged = True
            # `send` returns a future, so this makes no task.
            asyncio.ensure_future(link.send(NUDGE)).add_done_callback(ignore)

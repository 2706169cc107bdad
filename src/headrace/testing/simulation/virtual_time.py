"""Virtual time: one queue of callbacks for all simulated processes, and a clock that jumps.

Nothing sleeps. When no callback is ready, time moves to the next timer. Callbacks that are ready run in the
order in which they became so; timers of one instant in the order in which they were set. So a run depends on
nothing but its seed.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headrace.testing.simulation.virtual_loop import ProcessLoop

MOST_CALLBACKS_PER_INSTANT: Final = 100_000
"""More than this without time passing is a loop that never waits."""


class SimulationFailed(Exception):
    """The run found something that must not be."""


class Deadlock(SimulationFailed):
    """Somebody waits, and nothing will ever happen again."""


class SimulatedHandle:
    """One callback of one process. Like asyncio's handles, but cheap."""

    __slots__ = ("args", "callback", "context", "is_cancelled", "loop", "when_")

    def __init__(
        self,
        loop: ProcessLoop,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
        when: float = 0.0,
    ) -> None:
        self.loop = loop
        self.callback: Callable[..., Any] | None = callback
        self.args = args
        self.context = context
        self.is_cancelled = False
        self.when_ = when

    def cancel(self) -> None:
        self.is_cancelled = True
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        """In the time of its own loop."""
        return self.when_


class Scheduler:
    """Owns time. `after_callback` is called after each callback that ran, with the loop that ran it."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.callbacks_run = 0
        self.loops: list[ProcessLoop] = []
        self.failure: BaseException | None = None
        self.after_callback: Callable[[ProcessLoop], None] | None = None
        self._ready: deque[SimulatedHandle] = deque()
        self._timers: list[tuple[float, int, SimulatedHandle]] = []
        self._numbered = 0

    def bury(self) -> None:
        """After the run: end every process, and unwind what they left in an order that is ours to choose."""
        self.after_callback = None
        for loop in self.loops:
            loop.kill()
        outside = asyncio._get_running_loop()
        for loop in self.loops:
            asyncio._set_running_loop(loop)
            loop.unwind()
        asyncio._set_running_loop(outside)
        self._ready.clear()
        self._timers.clear()

    def soon(self, handle: SimulatedHandle) -> None:
        self._ready.append(handle)

    def at(self, when: float, handle: SimulatedHandle) -> None:
        self._numbered += 1
        heappush(self._timers, (when if when > self.now else self.now, self._numbered, handle))

    def fail(self, error: BaseException) -> None:
        """End the run with this error, once the callback that runs now is over."""
        if self.failure is None:
            self.failure = error

    def run_until(self, done: Callable[[], bool]) -> None:
        """Run until `done` says so. Raises what failed the run, or Deadlock."""
        ready, timers = self._ready, self._timers
        outside = asyncio._get_running_loop()
        current: ProcessLoop | None = None
        at_this_instant = 0
        try:
            while self.failure is None and not done():
                if not ready:
                    if not timers:
                        raise Deadlock(f"nothing is left to happen at {self.now:.3f} s")
                    when, _, handle = heappop(timers)
                    if when > self.now:
                        self.now = when
                        at_this_instant = 0
                else:
                    handle = ready.popleft()
                loop = handle.loop
                if handle.is_cancelled or not loop.takes(handle):
                    continue
                if loop is not current:
                    current = loop
                    asyncio._set_running_loop(loop)
                at_this_instant += 1
                if at_this_instant > MOST_CALLBACKS_PER_INSTANT:
                    raise Deadlock(f"{loop.name} never waits at {self.now:.3f} s: {handle.callback!r}")
                self._run(handle)
        finally:
            asyncio._set_running_loop(outside)
        if self.failure is not None:
            raise self.failure

    def _run(self, handle: SimulatedHandle) -> None:
        self.callbacks_run += 1
        callback = handle.callback
        if callback is None:
            return
        try:
            if handle.context is None:
                callback(*handle.args)
            else:
                handle.context.run(callback, *handle.args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            if not isinstance(error, SimulationFailed):
                error.add_note(f"in a callback of {handle.loop.name} at {self.now:.3f} s")
            self.fail(error)
        # A traceback keeps this frame and the one that called it. If they kept the task that failed, nobody
        # would hear that its error was dropped.
        handle.callback = callback = None
        handle.args = ()
        if self.after_callback is not None:
            try:
                self.after_callback(handle.loop)
            except SimulationFailed as error:
                self.fail(error)

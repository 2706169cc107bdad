"""The event loop of one simulated process. All of them share one scheduler, and with it one time.

A loop of its own is what makes a process mortal: when it is killed, nothing of it ever runs again, not even
a `finally`. A process that is paused (SIGSTOP, a hung host) keeps what is due to it until it is resumed.
"Threads" run their function on the loop, after a delay drawn from the seed.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from headrace.testing.simulation.virtual_time import Scheduler, SimulatedHandle, SimulationFailed

T = TypeVar("T")

THREAD_SECONDS: Final = (0.00005, 0.002)
"""How long a thread takes to do what it was given, and again until the loop hears of it."""

MOST_AWAITS_IN_FINALLY: Final = 20

if TYPE_CHECKING:
    # Sockets, signals and subprocesses stay NotImplementedError, which a type checker would call abstract.
    _Loop = asyncio.BaseEventLoop
else:
    _Loop = asyncio.AbstractEventLoop


class ProcessLoop(_Loop):
    def __init__(self, scheduler: Scheduler, name: str = "process", *, boot_seconds: float = 0.0) -> None:
        """`boot_seconds`: how long its host is up. Monotonic clocks of two hosts have nothing in common."""
        self.scheduler = scheduler
        self.name = name
        self.is_alive = True
        self.is_paused = False
        self.thread_slowness = 1.0
        """Factor on the time of threads: a slow disk."""
        self._offset = boot_seconds
        self._parked: list[SimulatedHandle] = []
        self._graveyard: list[Any] = []
        scheduler.loops.append(self)

    # --- life and death ---

    def takes(self, handle: SimulatedHandle) -> bool:
        """Whether the callback may run now. What is due to a paused process waits for it."""
        if self.is_paused:
            self._parked.append(handle)
            return False
        if not self.is_alive:
            self._graveyard.append(handle)
        return self.is_alive

    def kill(self) -> None:
        """End the process between two of its steps. Its tasks are kept, so that none of them is unwound."""
        self.is_alive = False
        self.is_paused = False
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            coroutine = task.get_coro()
            if (
                inspect.iscoroutine(coroutine)
                and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
            ):
                coroutine.close()  # it never began, so nothing runs; otherwise Python would complain of it
        self._graveyard.extend(tasks)
        self._graveyard.extend(self._parked)
        self._parked = []

    def unwind(self) -> None:
        """Run what is left of the dead, `finally` and all. Nothing that it does has an effect any more."""
        for task in self._graveyard:
            if isinstance(task, asyncio.Task) and inspect.iscoroutine(coroutine := task.get_coro()):
                for _ in range(MOST_AWAITS_IN_FINALLY):
                    with suppress(BaseException):
                        coroutine.close()
                        break
        self._graveyard.clear()

    def pause(self) -> None:
        self.is_paused = self.is_alive

    def resume(self) -> None:
        if self.is_paused:
            self.is_paused = False
            parked, self._parked = self._parked, []
            for handle in parked:
                self.scheduler.soon(handle)

    # --- callbacks ---

    def time(self) -> float:
        return self.scheduler.now + self._offset

    def call_soon(  # type: ignore[override]  # a handle of our own, with the same methods
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> SimulatedHandle:
        handle = SimulatedHandle(self, callback, args, context)
        self.scheduler._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is one thread

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> SimulatedHandle:
        when = self.scheduler.now + delay
        handle = SimulatedHandle(self, callback, args, context, when + self._offset)
        self.scheduler.at(when, handle)
        return handle

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> SimulatedHandle:
        handle = SimulatedHandle(self, callback, args, context, when)
        due = when - self._offset
        if due + self._offset < when:
            # Rounded down: the timer would go off before its time, as this loop counts it. Whoever then finds
            # that nothing is left but a rounding error, and waits for that, would do so for ever.
            due = nextafter(due, inf)
        self.scheduler.at(due, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        del handle  # found when its time comes

    # --- futures and tasks ---

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=str(name or self.name), context=context)

    def run_in_executor(  # type: ignore[override]  # typeshed's is a coroutine function
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """The executor does not matter: the function runs here, between two other steps of the simulation."""
        del executor
        future = self.create_future()
        self.call_later(self._thread_delay(), self._in_thread, future, func, args)
        return future

    def _in_thread(self, future: asyncio.Future[T], func: Callable[..., T], args: tuple[Any, ...]) -> None:
        if future.cancelled():
            return
        try:
            result = func(*args)
        except SimulationFailed:
            raise
        except Exception as error:
            self.call_later(self._thread_delay(), _settle, future, None, error)
        else:
            self.call_later(self._thread_delay(), _settle, future, result, None)

    def _thread_delay(self) -> float:
        return self.scheduler.random.uniform(*THREAD_SECONDS) * self.thread_slowness

    # --- running ---

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        self.scheduler.run_until(task.done)
        return task.result()

    def is_running(self) -> bool:
        return self.is_alive

    def is_closed(self) -> bool:
        return not self.is_alive

    def close(self) -> None:
        self.is_alive = False

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An error that nobody took: the run fails. What the dead leave behind does not count."""
        if not self.is_alive:
            return
        error = context.get("exception")
        text = f"{self.name}: {context.get('message')} {context.get('task') or context.get('future') or ''}"
        failure = SimulationFailed(text)
        failure.__cause__ = error
        self.scheduler.fail(failure)

    default_exception_handler = call_exception_handler

    async def shutdown_asyncgens(self) -> None:
        return None

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        del timeout


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)

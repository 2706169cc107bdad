"""An awaitable whose steps are timed: what a task takes of the loop, and not what it waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class TimedAwaitable(Generic[T]):
    def __init__(self, inner: Awaitable[T], on_step: Callable[[int], None]) -> None:
        """`on_step` is told the nanoseconds of each step, when it is over."""
        self._inner = inner
        self._on_step = on_step

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._inner.__await__()
        failure: BaseException | None = None
        while True:
            started = perf_counter_ns()
            try:
                waits_for = next(steps) if failure is None else steps.throw(failure)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._on_step(perf_counter_ns() - started)
            failure = None
            try:
                yield waits_for
            except BaseException as error:  # the task is cancelled: the inner one has to hear of it
                failure = error

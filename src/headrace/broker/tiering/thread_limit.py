"""Threads of which so many work at a time as a setting says, which may change while the broker runs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

MOST_THREADS: Final = 256

T = TypeVar("T")


class LimitedThreads:
    """A thread is started when there is work for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, limit: Callable[[], int]) -> None:
        self._loop = loop
        self._limit = limit
        self._threads = ThreadPoolExecutor(MOST_THREADS, name)
        self._waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._active = 0

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append((work, future))
        self._begin()
        return future

    def close(self) -> None:
        """Waits for what is under way, and not for what is waiting."""
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _begin(self) -> None:
        while self._waiting and self._active < min(self._limit(), MOST_THREADS):
            work, future = self._waiting.popleft()
            if not future.cancelled():
                self._active += 1
                running = self._loop.run_in_executor(self._threads, work)
                running.add_done_callback(partial(self._on_done, future))

    def _on_done(self, future: asyncio.Future[Any], done: asyncio.Future[Any]) -> None:
        self._active -= 1
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if future.cancelled():
            pass  # nobody asks any more
        elif isinstance(error, asyncio.CancelledError):
            future.cancel()
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(done.result())
        self._begin()

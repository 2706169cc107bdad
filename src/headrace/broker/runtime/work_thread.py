"""One thread for computations that would hold up the loop, one at a time.

Several threads would share the interpreter, and be done no sooner. A thread that computes in Python gives way
to the loop when the loop asks for the interpreter, which is after each of its system calls.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Final, TypeVar, TypeVarTuple

SWITCH_SECONDS: Final = 0.0005
"""How long the thread keeps the interpreter when the loop asks for it. Python's own 5 ms would be paid for
each system call of the loop."""

T = TypeVar("T")
Args = TypeVarTuple("Args")


def thread_pool(stops: AsyncExitStack, count: int, name: str) -> ThreadPoolExecutor:
    """Start a thread pool. A stop waits for its work; a failed start does not."""
    threads = ThreadPoolExecutor(count, name)
    stops.push(lambda _type, error, _traceback: threads.shutdown(wait=error is None))
    return threads


class WorkThread:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[*Args], T], *args: *Args) -> T:
        """`work` touches nothing that the loop may change meanwhile."""
        if self._thread is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
            self._thread = ThreadPoolExecutor(1, "work")
        return await self._loop.run_in_executor(self._thread, work, *args)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None

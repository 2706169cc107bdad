"""What the controller decides for a client, unless ZooKeeper keeps it from deciding.

A commit waits for as long as ZooKeeper does not answer, and its client would hear nothing but its own
time-out. So the client is told why. What has begun may still be committed later: RequestTimedOut says no more
than that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from headrace.broker.cluster.reachability import Reachability
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import RequestTimedOut
from headrace.core.timers import Timer

T = TypeVar("T")

LOOK_SECONDS: Final = 5.0


async def in_time(runtime: Runtime, reachability: Reachability | None, decision: Awaitable[T]) -> T:
    """Raises RequestTimedOut, with the reason, once ZooKeeper is known not to answer."""
    if reachability is None:
        return await decision
    loop = runtime.loop
    problem = ""
    timer: Timer | None = None

    def look() -> None:
        nonlocal problem, timer
        problem = reachability.noticed or ""
        if problem:
            limit.reschedule(loop.time())
        else:
            timer = runtime.timers.after(LOOK_SECONDS, "the look at ZooKeeper", look)

    try:
        async with asyncio.timeout(None) as limit:
            timer = runtime.timers.after(LOOK_SECONDS, "the look at ZooKeeper", look)
            return await decision
    except TimeoutError:
        raise RequestTimedOut(f"the controller cannot reach ZooKeeper: {problem}") from None
    finally:
        if timer is not None:
            timer.cancel()


async def each_in_time(
    runtime: Runtime,
    reachability: Reachability | None,
    decision: Awaitable[list[T]],
    refuse: Callable[[RequestTimedOut], list[T]],
) -> list[T]:
    """The same for a request about many things: each of them is refused."""
    try:
        return await in_time(runtime, reachability, decision)
    except RequestTimedOut as error:
        return refuse(error)

"""Steps are timed, and nothing else changes: results, errors and cancellation pass through."""

from __future__ import annotations

import asyncio
import time

import pytest

from headrace.broker.quotas.timed_awaitable import TimedAwaitable
from headrace.core.completion import Completion


async def test_what_it_waits_for_is_not_counted() -> None:
    async def work() -> str:
        for _ in range(3):
            time.sleep(0.002)
            await asyncio.sleep(0.05)
        return "done"

    steps: list[int] = []
    assert await TimedAwaitable(work(), steps.append) == "done"
    assert len(steps) == 4
    # A step takes at least what it sleeps; the waiting, 150 ms, would show.
    assert sum(step >= 2_000_000 for step in steps) >= 3


async def test_an_error_passes_through_and_its_step_counts() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    steps: list[int] = []
    with pytest.raises(ValueError, match="no"):
        await TimedAwaitable(work(), steps.append)
    assert len(steps) == 2


async def test_it_is_cancelled_inside() -> None:
    heard = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    steps: list[int] = []

    async def outer() -> None:
        await TimedAwaitable(work(), steps.append)

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == ["cancelled"]
    assert len(steps) == 2


async def test_completions_and_futures_are_awaitables_too() -> None:
    completion: Completion[int] = Completion()
    asyncio.get_running_loop().call_soon(completion.complete, 7)
    assert await TimedAwaitable(completion, lambda _: None) == 7
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.get_loop().call_soon(future.set_result, 8)
    assert await TimedAwaitable(future, lambda _: None) == 8

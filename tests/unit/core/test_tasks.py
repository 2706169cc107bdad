"""Background tasks and callbacks fail alone, and are heard."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.core.tasks import spawn


@pytest.fixture
async def complaints() -> list[str]:
    heard: list[str] = []

    def handler(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        heard.append(context["message"])

    asyncio.get_running_loop().set_exception_handler(handler)
    return heard


async def test_a_task_that_fails_is_named_though_nobody_awaits_it(complaints: list[str]) -> None:
    async def fail() -> None:
        raise RuntimeError("a defect")

    task = spawn("the counting of sheep", fail())
    await asyncio.wait((task,))
    await asyncio.sleep(0)
    assert complaints == ["the counting of sheep failed: RuntimeError('a defect')"]


async def test_what_ends_or_is_cancelled_is_no_failure(complaints: list[str]) -> None:
    ended = spawn("short", asyncio.sleep(0, "answer"))
    assert await ended == "answer"
    cancelled = spawn("long", asyncio.sleep(3600))
    cancelled.cancel()
    await asyncio.wait((cancelled,))
    await asyncio.sleep(0)
    assert complaints == []

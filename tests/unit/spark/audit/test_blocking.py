"""A job may be called where a loop runs, as in a notebook."""

from __future__ import annotations

import asyncio

from headrace.spark.audit.blocking import finish


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


def test_without_a_loop() -> None:
    assert finish(answer()) == 42


async def test_inside_a_loop() -> None:
    assert finish(answer()) == 42

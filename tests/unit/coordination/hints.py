"""Waiting for what a watch tells, without guessing how long it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

BOUND_SECONDS = 90.0


class Hints:
    """Given to a watch as its callback."""

    def __init__(self) -> None:
        self.count = 0
        self._told = asyncio.Event()

    def __call__(self, *_: object) -> None:
        self.count += 1
        self._told.set()

    async def until(self, condition: Callable[[], Awaitable[bool]], *, since: int) -> None:
        """Returns once `condition` holds and more than `since` was told. Looks when something is told."""
        async with asyncio.timeout(BOUND_SECONDS):
            while True:
                self._told.clear()
                if self.count > since and await condition():
                    return
                await self._told.wait()

    async def another(self) -> None:
        """Returns when something is told after this call."""
        self._told.clear()
        async with asyncio.timeout(BOUND_SECONDS):
            await self._told.wait()

"""Requests that are being carried out, so that a stop can wait for them."""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.broker.runtime.logging import get_logger

DRAIN_SECONDS: Final = 10.0
"""How long a stop waits for requests that are being carried out."""


class InFlightRequests:
    def __init__(self) -> None:
        self._log = get_logger("headrace.requests")
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.is_draining = False
        """Nothing is begun any more that would have to be waited for."""

    def keep(self, task: asyncio.Task[None]) -> None:
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def drain(self) -> None:
        """Wait for requests that are being carried out, and take no more of those that have to wait.

        Not for ever: what waits for a commit waits for the coordination service.
        """
        self.is_draining = True
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._tasks:
                    await asyncio.wait(list(self._tasks))
        except TimeoutError:
            self._log.warning("requests dropped at shutdown", requests=len(self._tasks))
            self.abandon()

    def abandon(self) -> None:
        """Wait for nothing, and take nothing more."""
        self.is_draining = True
        for task in list(self._tasks):
            task.cancel()

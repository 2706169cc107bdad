"""Has a thread make durable that partitions are gone, so that a deletion does not hold up the loop."""

from __future__ import annotations

import asyncio

from headrace.log.removals import Removals, RemovalTicket


class Removing:
    def __init__(self, loop: asyncio.AbstractEventLoop, removals: Removals) -> None:
        self._loop = loop
        self._running: set[asyncio.Future[None]] = set()
        removals.on_ticket = self._run

    def _run(self, ticket: RemovalTicket) -> None:
        future = self._loop.run_in_executor(None, ticket.run)
        self._running.add(future)

        def on_done(done: asyncio.Future[None]) -> None:
            self._running.discard(done)
            ticket.done()

        future.add_done_callback(on_done)

    async def drain(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

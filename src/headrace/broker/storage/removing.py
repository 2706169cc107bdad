"""Has a thread make durable that partitions are gone, so that a deletion does not hold up the loop.

One deletion at a time for each directory. What comes meanwhile goes together with the next: each takes the
same few syncs and writes the same checkpoints, however many partitions it has.
"""

from __future__ import annotations

import asyncio

from headrace.core.failures import report
from headrace.log.directory import LogDirectory
from headrace.log.removals import RemovalJob, Removals


class Removing:
    def __init__(self, loop: asyncio.AbstractEventLoop, removals: Removals) -> None:
        self._loop = loop
        self._running: dict[LogDirectory, asyncio.Future[None]] = {}
        self._next: dict[LogDirectory, RemovalJob] = {}
        removals.on_removal = self._take

    def _take(self, job: RemovalJob) -> None:
        directory = job.directory
        if directory not in self._running:
            self._run(job)
        elif directory in self._next:
            self._next[directory].join(job)
        else:
            self._next[directory] = job

    def _run(self, job: RemovalJob) -> None:
        directory = job.directory
        future = self._running[directory] = self._loop.run_in_executor(None, job.run)

        def on_done(done: asyncio.Future[None]) -> None:
            del self._running[directory]
            error = done.exception()
            if error is not None:
                report(f"the removal of partitions from {directory.path}", error)
            if directory in self._next:
                self._run(self._next.pop(directory))
            job.done()

        future.add_done_callback(on_done)

    async def drain(self) -> None:
        while self._running:
            await asyncio.wait(self._running.values())

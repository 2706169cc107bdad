"""Fetches of what is not in memory: threads bring it, verified, and then the fetch is read again.

Whoever wants the same range shares one read of the disk. What a thread finds damaged is told to `Integrity`
before anybody reads again, so that nobody is given it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

from headrace.broker.fetch.read_result import ColdPart
from headrace.broker.fetch.remote_read import RemoteRead
from headrace.core.failures import report
from headrace.log.read_ahead import ReadAhead
from headrace.log.segment import Segment
from headrace.metrics.scrub import ScrubMetrics

if TYPE_CHECKING:
    from headrace.broker.storage.integrity import Integrity
    from headrace.broker.tiering.remote_reads import RemoteReads

Then = Callable[[], None]
MOST_AT_ONCE: Final = 50
"""Of one fetch. What comes back together is dealt with in one turn, and others want threads too."""


class ColdReads:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: Executor,
        integrity: Integrity,
        counts: ScrubMetrics,
        remote: RemoteReads | None = None,
    ) -> None:
        self._remote = remote
        self._loop = loop
        self._threads = threads
        self._integrity = integrity
        self._counts = counts
        self._running: dict[tuple[Segment, int, bool], list[Then]] = {}

    def bring(self, parts: Sequence[ColdPart], then: Then) -> None:
        """Call `then` on the loop when all of them have been brought, or could not be."""
        missing, begun = len(parts), min(len(parts), MOST_AT_ONCE)

        def one_is_there() -> None:
            nonlocal missing, begun
            missing -= 1
            if begun < len(parts):
                begun += 1
                self._bring(parts[begun - 1], one_is_there)
            if not missing:
                then()

        for part in parts[:begun]:
            self._bring(part, one_is_there)

    def _bring(self, part: ColdPart, then: Then) -> None:
        if isinstance(part.read, RemoteRead):
            assert self._remote is not None
            self._remote.bring(part.read.history, part.read.offset, then)
            return
        partition, (segment, offset) = part.partition, (part.read.segment, part.read.offset)
        key = (segment, offset, part.read.transactions)
        waiting = self._running.get(key)
        if waiting is not None:
            waiting.append(then)
            return
        self._running[key] = [then]
        self._counts.cold_reads += 1
        job = ReadAhead(partition.log, segment, offset, part.max_bytes, transactions=part.read.transactions)
        future = self._loop.run_in_executor(self._threads, job.run)

        def on_done(done: asyncio.Future[None]) -> None:
            try:
                self._integrity.on_read_ahead(partition, job, done.exception())
            except Exception as error:
                report(f"a cold read of {partition.topic_partition}", error)
            for each in self._running.pop(key):
                try:
                    each()
                except Exception as error:  # those behind it wait too
                    report(f"a fetch of {partition.topic_partition}", error)

        future.add_done_callback(on_done)

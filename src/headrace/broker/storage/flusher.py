"""Group commit: one fdatasync per log at a time, in a thread; whoever waits is told when it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from headrace.core.errors import HeadraceError, NotLeader, StorageError, UnknownTopicOrPartition
from headrace.core.failures import report
from headrace.log.flush import FlushJob
from headrace.log.partition_log import PartitionLog
from headrace.metrics.histogram import LatencyHistogram

OnDurable = Callable[[HeadraceError | None], None]


class Flusher:
    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Executor, times: LatencyHistogram) -> None:
        self.loop = loop
        self._times = times
        self._threads = threads
        self._waiting: dict[PartitionLog, list[tuple[int, int, OnDurable]]] = {}
        """Up to which offset, after how many truncations, and who."""
        self._running: set[asyncio.Future[None]] = set()

    def flush(self, log: PartitionLog, then: OnDurable | None = None) -> None:
        """Make everything that is appended now durable. Requests that come meanwhile share the next sync."""
        if then is not None:
            self._waiting.setdefault(log, []).append((log.end_offset, log.truncations, then))
        if not log.flush_in_progress:
            self._start(log)

    def on_truncated(self, log: PartitionLog) -> None:
        """Nothing is synced while a log is being truncated. Now what is left of it is."""
        if not log.flush_in_progress:
            self._refuse_cut_off(log)
            if log in self._waiting or (log.synced_offset < log.end_offset and log.is_open):
                self._start(log)

    def on_moved(self, log: PartitionLog) -> None:
        """Nothing is synced here while a log changes its directory: the move has synced all of it."""
        self._tell(log, log.synced_offset, None)
        if log in self._waiting and not log.flush_in_progress:
            self._start(log)

    def _start(self, log: PartitionLog) -> None:
        if log.truncation is not None:
            return
        try:
            job = log.take_flush()
        except StorageError as error:
            self._tell(log, None, error)
            return
        if job is None:
            # Closed meanwhile: its topic was deleted, and with it what they wait for.
            self._tell(log, None, UnknownTopicOrPartition(f"{log.topic_partition} was deleted"))
            return
        began = self.loop.time()
        future = self.loop.run_in_executor(self._threads, job.run)
        self._running.add(future)

        def on_done(done: asyncio.Future[None]) -> None:
            self._times.observe(int((self.loop.time() - began) * 1_000_000))
            self._on_synced(job, log, done)

        future.add_done_callback(on_done)

    def _on_synced(self, job: FlushJob, log: PartitionLog, done: asyncio.Future[None]) -> None:
        self._running.discard(done)
        error = done.exception()
        if error is None:
            job.done()
            left = False
            if job.truncations == log.truncations:
                self._tell(log, job.offset, None)
            else:
                # It began before a cut and counts for nothing: what is left, or came since, is synced again.
                self._refuse_cut_off(log)
                left = log.synced_offset < log.end_offset and not log.closed
            if left or log in self._waiting:
                self._start(log)
            return
        failure = error if isinstance(error, StorageError) else StorageError(str(error))
        job.failed()
        self._tell(log, None, failure)

    def _refuse_cut_off(self, log: PartitionLog) -> None:
        """Whoever has waited since before the log was cut waits for records that may not be there any more.

        Their offset may never be reached again, or only by other records.
        """
        waiting = self._waiting.pop(log, [])
        rest = [item for item in waiting if item[1] == log.truncations]
        if rest:
            self._waiting[log] = rest
        for _, truncations, then in waiting:
            if truncations != log.truncations:
                _call(then, NotLeader(f"{log.topic_partition} was cut off to follow another leader"))

    def _tell(self, log: PartitionLog, offset: int | None, error: HeadraceError | None) -> None:
        """Tell those who wait for what lies below `offset`, or everybody (None)."""
        waiting = self._waiting.pop(log, [])
        rest = [item for item in waiting if offset is not None and item[0] > offset]
        if rest:
            self._waiting[log] = rest
        for end, _, then in waiting:
            if offset is None or end <= offset:
                _call(then, error)

    async def drain(self) -> None:
        while self._running:
            await asyncio.wait(self._running)


def _call(then: OnDurable, error: HeadraceError | None) -> None:
    """Those behind it wait for the same sync."""
    try:
        then(error)
    except Exception as failure:
        report("somebody who waited for a sync", failure)

"""Jobs of the tier's machine, carried out in threads: one at a time for each partition.

The machine decides on the loop, and is told on the loop what came of it. A copy waits for its turn under
remote.log.manager.copy.max.bytes.per.second before it begins, so that no thread and no deadline is spent on
waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.tiering.thread_limit import LimitedThreads
from headrace.core.errors import CorruptBatch, CorruptLog
from headrace.security.token_bucket import TokenBucket
from headrace.tier.calls import carry_out
from headrace.tier.collecting import CollectJob, PurgeJob
from headrace.tier.jobs import UploadJob
from headrace.tier.knowledge import Failed, Result, Unsettled, Unusable, Written

if TYPE_CHECKING:
    from headrace.broker.runtime.runtime import Runtime
    from headrace.broker.tiering.history import PartitionHistory
    from headrace.core.ports_objects import ObjectStore
    from headrace.tier.jobs import Job
    from headrace.tier.local import LocalLog

BURST_SECONDS: Final = 1.0
UPLOADED_PER_SECOND: Final = 1_000_000
"""The least that is expected of a store: an upload has so much more time."""


class TierJobs:
    def __init__(
        self,
        runtime: Runtime,
        store: ObjectStore,
        threads: LimitedThreads,
        on_damage: Callable[[PartitionHistory, int], None],
    ) -> None:
        """`on_damage` is told from which offset on a local segment is not what was written."""
        self._runtime = runtime
        self._store = store
        self._threads = threads
        self._on_damage = on_damage
        self._metrics = runtime.metrics.tiering
        self._copied = TokenBucket(self._rate(), BURST_SECONDS, runtime.monotonic_ms())
        self._running: set[asyncio.Future[Result]] = set()
        self._is_stopped = False

    def _rate(self) -> int:
        return self._runtime.config.remote_log_manager_copy_max_bytes_per_second

    def stop(self) -> list[asyncio.Future[Result]]:
        """What is still under way in threads."""
        self._is_stopped = True
        return list(self._running)

    def advance(self, history: PartitionHistory, local: LocalLog) -> None:
        """Begin the next job, if there is one."""
        if history.is_busy or self._is_stopped:
            return
        job = history.machine.take(local, self._runtime.clock.wall_ms())
        if job is None:
            return
        history.is_busy = True
        if isinstance(job, UploadJob):
            self._when_allowed(history, job)
        else:
            self._begin(history, job)

    def _when_allowed(self, history: PartitionHistory, job: UploadJob) -> None:
        now_ms = self._runtime.monotonic_ms()
        self._copied.change_rate(self._rate(), now_ms)
        wait_ms = self._copied.wait_ms(now_ms)
        if self._is_stopped:
            return
        if wait_ms:
            self._metrics.throttled_ms += wait_ms
            again = partial(self._when_allowed, history, job)
            self._runtime.timers.after(wait_ms / 1000, "a copy to the object store", again)
            return
        self._copied.take(job.segment.size, now_ms)
        self._metrics.copy_requests += 1
        self._begin(history, job)

    def _begin(self, history: PartitionHistory, job: Job) -> None:
        machine = history.machine
        seconds = self._runtime.config.headrace_tier_call_timeout_ms / 1000
        if isinstance(job, UploadJob):
            seconds += job.segment.size / UPLOADED_PER_SECOND
        future = self._threads.run(partial(_carry_out, self._store, job, seconds))
        self._running.add(future)

        def on_done(done: asyncio.Future[Result]) -> None:
            self._running.discard(done)
            if done.cancelled():
                return
            error = done.exception()
            result = Failed(repr(error)) if error is not None else done.result()
            if isinstance(error, CorruptLog | CorruptBatch) and isinstance(job, UploadJob):
                self._on_damage(history, job.name.base_offset)
            if history.machine is machine and machine.is_current(job):
                history.is_busy = False
            machine.done(job, result, self._runtime.clock.wall_ms())
            self._count(history, job, result)
            if not isinstance(result, Failed | Unsettled | Unusable):
                history.on_progress(history)

        future.add_done_callback(on_done)

    def _count(self, history: PartitionHistory, job: Job, result: Result) -> None:
        has_failed = isinstance(result, Failed | Unsettled | Unusable)
        if isinstance(job, UploadJob):
            if isinstance(result, Written):
                self._metrics.copied_bytes += job.segment.size
            elif has_failed:
                self._metrics.copy_errors += 1
        elif isinstance(job, CollectJob | PurgeJob):
            self._metrics.delete_requests += 1
            self._metrics.delete_errors += has_failed
        reason = result.reason if isinstance(result, Failed | Unsettled | Unusable) else ""
        if reason and not history.failure:
            self._runtime.log.warning(
                "object store: a job failed, and is tried again",
                partition=str(history.partition.topic_partition),
                job=type(job).__name__,
                error=reason,
            )
        history.failure = reason


def _carry_out(store: ObjectStore, job: Job, deadline_seconds: float) -> Result:
    return carry_out(store, job.run(), deadline_seconds)

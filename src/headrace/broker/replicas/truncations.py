"""Truncations of followers' logs: closed at once, cut by threads, followed again when that is done.

After a failure of a broker thousands of partitions can be truncated at once, and each waits for syncs. Those
that come together have their recovery points lowered with one write for each directory. Then they are cut, a
few at a time, so that the threads leave the processor to the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.flusher import Flusher
from headrace.core.errors import CorruptLog, HeadraceError
from headrace.log.directory import LogDirectory
from headrace.log.truncation import TruncationJob, lower_together
from headrace.replication.replica import Role

if TYPE_CHECKING:
    from headrace.broker.replicas.host import FollowingPartition

AT_ONCE: Final = 4
DAMAGED_SECONDS: Final = 1.0
"""Until a log that cannot be cut for its damage is followed again."""


class Truncations:
    def __init__(
        self,
        runtime: Runtime,
        flusher: Flusher,
        follow: Callable[[FollowingPartition], None],
        unfollow: Callable[[FollowingPartition], None],
        on_damage: Callable[[FollowingPartition, int], None],
        threads: Executor | None,
    ) -> None:
        self._runtime = runtime
        self._flusher = flusher
        self._follow = follow
        self._unfollow = unfollow
        self._on_damage = on_damage
        """Told from which offset on a log could not be read."""
        self._threads = threads
        self._waiting: dict[LogDirectory, list[FollowingPartition]] = {}
        """For their recovery points to be lowered."""
        self._lowered: list[FollowingPartition] = []
        """For their turn to be cut."""
        self._lowering: set[LogDirectory] = set()
        self._running: set[asyncio.Future[None]] = set()
        self._cutting = 0
        self._is_stopped = False

    def begin(self, partition: FollowingPartition) -> None:
        """`partition.log` has a truncation: run it, then follow on."""
        directory = partition.log.directory
        self._waiting.setdefault(directory, []).append(partition)
        # At the end of this turn: the answer that brought it may bring others.
        self._runtime.loop.call_soon(self._lower, directory)

    def _lower(self, directory: LogDirectory) -> None:
        if directory in self._lowering or self._is_stopped:
            return
        partitions = self._waiting.pop(directory, [])
        jobs = [job for each in partitions if isinstance(job := each.log.truncation, TruncationJob)]
        if not jobs:
            return
        self._lowering.add(directory)
        future = self._runtime.loop.run_in_executor(self._threads, lower_together, directory, jobs)
        self._running.add(future)

        def on_done(done: asyncio.Future[None]) -> None:
            self._running.discard(done)
            self._lowering.discard(directory)
            error = done.exception()
            if error is None:
                self._lowered += partitions
                self._cut_next()
            else:
                for partition in partitions:
                    self._finish(partition, error)
            self._lower(directory)

        future.add_done_callback(on_done)

    def _cut_next(self) -> None:
        while self._lowered and self._cutting < AT_ONCE and not self._is_stopped:
            partition = self._lowered.pop(0)
            job = partition.log.truncation
            if isinstance(job, TruncationJob):
                self._cut(partition, job)

    def _cut(self, partition: FollowingPartition, job: TruncationJob) -> None:
        self._cutting += 1
        future = self._runtime.loop.run_in_executor(self._threads, job.run)
        self._running.add(future)

        def on_done(done: asyncio.Future[None]) -> None:
            self._running.discard(done)
            self._cutting -= 1
            self._finish(partition, done.exception() or job.failure, job.offset)
            self._cut_next()

        future.add_done_callback(on_done)

    def _finish(
        self, partition: FollowingPartition, error: BaseException | None, offset: int | None = None
    ) -> None:
        if error is not None:
            self._runtime.log.warning(
                "log truncation failed", partition=str(partition.topic_partition), error=str(error)
            )
        try:
            partition.on_truncated(self._runtime.clock.monotonic(), self._runtime.clock.wall_ms())
            self._flusher.on_truncated(partition.log)
        except HeadraceError as failure:
            # Its directory, or its deletion: the metadata or the operator will say more.
            self._runtime.log.warning(
                "cannot follow the leader", partition=str(partition.topic_partition), error=str(failure)
            )
        if isinstance(error, CorruptLog) and offset is not None and partition.role == Role.FOLLOWER:
            self._look_at(partition, offset)
        elif partition.role == Role.FOLLOWER:
            self._follow(partition)
        else:
            self._unfollow(partition)

    def _look_at(self, partition: FollowingPartition, offset: int) -> None:
        """Nobody knows where to cut a log whose batches cannot be read there. It is looked at, and mended or
        given up; until then it would have to be cut as often as it follows."""
        segments = [each.base_offset for each in partition.log.segments if each.base_offset <= offset]
        self._on_damage(partition, max(partition.log.log_start_offset, *segments[-1:]))
        again = partial(self._follow_again, partition)
        self._runtime.timers.after(DAMAGED_SECONDS, "a truncation of a damaged log", again)

    def _follow_again(self, partition: FollowingPartition) -> None:
        if partition.role == Role.FOLLOWER and not partition.log.closed and not self._is_stopped:
            self._follow(partition)

    async def stop(self) -> None:
        """Finish what is being cut. The rest stays as it is: the next start asks the leader again."""
        self._is_stopped = True
        while self._running:
            await asyncio.wait(self._running)
        for partition in [*self._lowered, *(each for waiting in self._waiting.values() for each in waiting)]:
            job = partition.log.truncation
            if job is not None:
                job.cancel()

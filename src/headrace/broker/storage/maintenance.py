"""What a broker does by the clock: retention, flushes that are due, checkpoints, removal of dead files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.flusher import Flusher
from headrace.broker.storage.integrity import Integrity
from headrace.broker.storage.producer_memory import ProducerMemory
from headrace.broker.storage.scrubbing import Scrubbing
from headrace.core.errors import CorruptLog, HeadraceError, StorageError
from headrace.core.tasks import spawn
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog
from headrace.replication.replica import Role

if TYPE_CHECKING:
    from headrace.replication.partition import Partition

TICK_SECONDS: Final = 1.0
RAISED_SECONDS: Final = 0.1
"""How long a raised log start waits, so that one checkpoint covers all that are raised meanwhile."""
PRODUCERS_LOOKED_AT_MS: Final = 60_000
PARTITIONS_PER_TURN: Final = 50
"""After so many the loop has a turn, so that thousands of partitions do not delay a produce."""


class Maintenance:
    def __init__(
        self,
        runtime: Runtime,
        node: BrokerLifecycle,
        logs: LogManager,
        partitions: PartitionTable,
        flusher: Flusher,
        replicas: ReplicaManager,
        integrity: Integrity,
        producer_memory: ProducerMemory,
        scrubbing: Scrubbing,
    ) -> None:
        self._runtime = runtime
        self._node = node
        self._logs = logs
        self._partitions = partitions
        self._flusher = flusher
        self._replicas = replicas
        self._integrity = integrity
        self._producer_memory = producer_memory
        self._scrubbing = scrubbing
        self._task: asyncio.Task[None] | None = None
        self._due: dict[str, float] = {}
        self._checkpointing = asyncio.Lock()
        self._soon: asyncio.Task[None] | None = None
        """The checkpoint of log starts that were raised."""
        self._telling: asyncio.Task[None] | None = None
        """The report of the versions of log directories. `checkpoint` does not await it, so a hanging
        coordination service does not delay a checkpoint."""

    def start(self) -> None:
        self._scrubbing.start()
        # At once: a new directory has no claims, and without them a later start cannot tell what it has lost.
        self._due["claims"] = 0.0
        self._task = spawn("maintenance", self._run())
        for directory in self._logs.directories:
            directory.on_raised = self._checkpoint_soon

    async def stop(self) -> None:
        await self._scrubbing.stop()
        async with self._checkpointing:  # no job may be in a thread when the logs are closed
            for directory in self._logs.directories:
                directory.on_raised = lambda: None
            tasks = [task for task in (self._task, self._soon, self._telling) if task is not None]
            self._task = None
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._flush()
                await self._remove_files()
                if self._is_due("producers", lambda: PRODUCERS_LOOKED_AT_MS):
                    await self._producer_memory.tidy()
                if self._is_due("retention", lambda: self._runtime.config.log_retention_check_interval_ms):
                    await self._enforce_retention()
                if self._is_due(
                    "checkpoint", lambda: self._runtime.config.log_flush_offset_checkpoint_interval_ms
                ):
                    await self.checkpoint()
                elif self._is_due(
                    "claims", lambda: self._runtime.config.replica_high_watermark_checkpoint_interval_ms
                ):
                    await self.checkpoint(only_claims=True)
            except StorageError as error:
                self._runtime.log.error("log maintenance skipped an offline directory", error=str(error))
            except Exception as error:
                self._runtime.log.error(
                    "log maintenance failed; continuing", error=repr(error), exc_info=error
                )

    def _is_due(self, name: str, interval_ms: Callable[[], int]) -> bool:
        now = self._runtime.clock.monotonic()
        due = self._due.setdefault(name, now + interval_ms() / 1000)
        if now < due:
            return False
        self._due[name] = now + interval_ms() / 1000
        return True

    async def _flush(self) -> None:
        for count, log in enumerate(self._logs.due_flushes(self._runtime.clock.wall_ms()), 1):
            if log.flush_is_due(self._runtime.clock.wall_ms()):  # ask again: the loop ran in between
                self._flusher.flush(log)
            if count % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _enforce_retention(self) -> None:
        for count, partition in enumerate(self._partitions, 1):
            log = partition.log
            if not log.directory.is_online or not log.is_open:
                continue
            now_ms = self._runtime.clock.wall_ms()
            try:
                removed = await self._remove_segments(partition, now_ms)
                log.expire_producers(
                    now_ms, self._runtime.monotonic_ms(), self._runtime.config.producer_id_expiration_ms
                )
            except HeadraceError as error:
                # One damaged segment must not keep the other partitions from their retention.
                name = str(partition.topic_partition)
                self._runtime.log.error("retention failed", partition=name, error=str(error))
                if isinstance(error, CorruptLog):  # else only the next scrub finds it
                    self._integrity.doubt(partition, log.log_start_offset)
                continue
            if removed:
                self._runtime.log.info(
                    "segments removed by retention",
                    partition=str(partition.topic_partition),
                    segments=removed,
                    log_start_offset=log.log_start_offset,
                )
            if count % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _remove_segments(self, partition: Partition, now_ms: int) -> int:
        """Make the new log start durable, then remove the files."""
        log = partition.log
        if log.config.remote_storage_enable:
            return 0  # what may go from this disk is for `broker/tiering` to say, where there is a store
        before = log.log_start_offset
        job = log.take_retention(now_ms, partition.high_watermark)
        if log.log_start_offset > before:
            partition.on_start_raised()
        if job is None:
            return 0
        await self._runtime.loop.run_in_executor(None, job.run)
        removed = job.done(now_ms)
        self._report_starts((log,))
        return removed

    async def checkpoint(self, *, only_claims: bool = False) -> None:
        """Write one checkpoint at a time: an older one, written after a newer one, would undo it."""
        async with self._checkpointing:
            take = self._logs.take_claims if only_claims else self._logs.take_checkpoint
            for job in take(self._partitions.high_watermarks()):
                try:
                    await self._runtime.loop.run_in_executor(None, job.run)
                except StorageError:
                    job.failed()
                    raise
                self._report_starts(job.done())
        if self._task is not None and (self._telling is None or self._telling.done()):
            self._telling = spawn("the versions of log directories", self._node.tell_versions())

    def _checkpoint_soon(self) -> None:
        if self._soon is None:
            self._soon = spawn("the checkpoint of log starts", self._checkpoint_raised())

    async def _checkpoint_raised(self) -> None:
        try:
            while any(directory.raised for directory in self._logs.online()):
                await asyncio.sleep(RAISED_SECONDS)
                await self.checkpoint()
        except Exception as error:  # the next checkpoint retries it
            self._runtime.log.error("log start checkpoint failed", error=repr(error), exc_info=error)
        finally:
            self._soon = None

    def _report_starts(self, logs: Iterable[PartitionLog]) -> None:
        """Make the follower replicas among them fetch at once, so that each leader learns their durable log
        starts. DeleteRecords waits for these at the leader."""
        for log in logs:
            partition = self._partitions.find(*log.topic_partition)
            if partition is not None and partition.log is log and partition.role == Role.FOLLOWER:
                self._replicas.follow(partition)

    async def _remove_files(self) -> None:
        now_ms = self._runtime.clock.wall_ms()
        expired = self._logs.take_expired_files(now_ms)
        if expired:
            await self._runtime.loop.run_in_executor(None, self._logs.removals.remove_files, expired)
        due = self._logs.removals.take_due(now_ms)
        if due:
            await self._runtime.loop.run_in_executor(None, self._logs.removals.remove, due)

"""When a log is compacted, by whom, and what becomes of the result.

The dirtiest log that is worth it comes first. Its job goes to a worker; each group of segments that comes
back is swapped in here, on the loop, if the log is still the one that the job was made from. What a worker
makes of a log that was cut, deleted or shortened meanwhile is thrown away.
"""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Final

from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.cleaner_pool import CleanerWorkers, InPlace, Processes, WorkerLost
from headrace.broker.storage.maintenance import Maintenance
from headrace.core.errors import CorruptLog, HeadraceError, StorageError
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.log.cleaner.job import CleanedGroup, PassEnd
from headrace.log.cleaner.plan import Dirt, Limits, find_dirt, make_job, segments_before
from headrace.log.cleaner.swap import SegmentSwap
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from headrace.replication.partition import Partition

LOGS_PER_TURN: Final = 50
LOOK_AGAIN_SECONDS: Final = 1.0
SHORTEST_BACKOFF_MS: Final = 50
IDLE_ROUNDS: Final = 4
"""Rounds of log.cleaner.backoff.ms without work after which the processes are ended."""
_BROKEN_DISK: Final = (errno.EIO, errno.EROFS)


class Cleaning:
    def __init__(
        self, runtime: Runtime, logs: LogManager, partitions: PartitionTable, maintenance: Maintenance
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._partitions = partitions
        self._maintenance = maintenance
        self._counts = runtime.metrics.cleaner
        self._task: asyncio.Task[None] | None = None
        self._running: dict[TopicPartition, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        """A pass has ended."""
        self._later: dict[TopicPartition, float] = {}
        """Logs whose pass failed, and when to look at them again."""
        self.uncleanable: dict[PartitionLog, str] = {}
        """Logs in which the cleaner has met damage, and which."""
        self._workers: CleanerWorkers = InPlace(runtime.disk)
        if runtime.environment.processes:
            self._workers = Processes(self._on_worker_lost)
        self._counts.read_uncleanable = lambda: len(self.uncleanable)

    def start(self) -> None:
        if self._runtime.config.log_cleaner_enable:
            self._task = spawn("the cleaner", self._run())

    async def stop(self) -> None:
        tasks = [*self._running.values()]
        if self._task is not None:
            tasks.append(self._task)
            self._task = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._running.clear()
        await self._workers.close()

    def _on_worker_lost(self) -> None:
        self._counts.lost_workers += 1

    # --- which log is next ---

    async def _run(self) -> None:
        idle = 0
        while True:
            chosen = None
            try:
                if len(self._running) < self._runtime.config.log_cleaner_threads:
                    chosen = await self._choose()
            except Exception as error:
                self._runtime.log.error(
                    "log cleaner could not choose a log", error=repr(error), exc_info=error
                )
            self._changed.clear()
            if chosen is not None:
                idle = 0
                self._begin(*chosen)
                continue
            idle = 0 if self._running else idle + 1
            self._workers.retire(0 if idle > IDLE_ROUNDS else self._runtime.config.log_cleaner_threads)
            await self._back_off()

    async def _back_off(self) -> None:
        """Until a pass has ended, or log.cleaner.backoff.ms is over, which may change meanwhile."""
        began = self._runtime.clock.monotonic()
        while True:
            # At least a little: with a backoff of 0 the loop would do nothing else.
            until = began + max(self._runtime.config.log_cleaner_backoff_ms, SHORTEST_BACKOFF_MS) / 1000
            left = until - self._runtime.clock.monotonic()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(min(left, LOOK_AGAIN_SECONDS)):
                    await self._changed.wait()
                    return
            except TimeoutError:
                continue

    async def _choose(self) -> tuple[Partition, Dirt] | None:
        """The dirtiest log of those that are worth a pass."""
        self.uncleanable = {log: why for log, why in self.uncleanable.items() if not log.closed}
        best: tuple[Partition, Dirt] | None = None
        largest = 0.0
        looked_at = 0
        for partition in list(self._partitions):
            if "compact" not in partition.log.config.cleanup_policy or not self._may_clean(partition):
                continue
            looked_at += 1
            if looked_at % LOGS_PER_TURN == 0:
                await asyncio.sleep(0)
            try:
                dirt = self._dirt(partition, partition.log.recovery_point)
            except HeadraceError as error:
                self._give_up(partition.log, error)
                continue
            largest = max(largest, dirt.ratio)
            if dirt.is_worth_a_pass(partition.log) and (best is None or dirt.ratio > best[1].ratio):
                best = partition, dirt
        self._counts.max_dirty_ratio = largest
        self._counts.last_run = self._runtime.clock.monotonic()
        return best

    def _may_clean(self, partition: Partition) -> bool:
        name = partition.topic_partition
        if name in self._running or partition.is_offline or not partition.log.is_open:
            return False
        if partition.log in self.uncleanable:
            return False
        return self._later.get(name, 0.0) <= self._runtime.clock.monotonic()

    def _dirt(self, partition: Partition, durable: int) -> Dirt:
        log = partition.log
        saved = self._logs.checkpoints_of(log)
        clean_until = saved.clean_offsets.get(log.topic_partition, log.log_start_offset)
        try:
            return find_dirt(
                log, clean_until, partition.last_stable_offset, durable, self._runtime.clock.wall_ms()
            )
        except OSError as error:
            raise log.directory.fail(error, f"look at {log.topic_partition}") from error

    # --- one pass ---

    def _begin(self, partition: Partition, _dirt: Dirt) -> None:
        name = partition.topic_partition
        task = spawn(f"cleaning of {name}", self._clean(partition))
        self._running[name] = task

        def on_done(_: asyncio.Task[None]) -> None:
            self._running.pop(name, None)
            self._changed.set()

        task.add_done_callback(on_done)

    async def _clean(self, partition: Partition) -> None:
        log = partition.log
        try:
            await self._pass(partition)
        except CorruptLog as error:
            self._give_up(log, error)
        except WorkerLost as error:
            self._try_later(log, str(error))
        except OSError as error:
            if error.errno in _BROKEN_DISK and not log.closed:
                log.directory.fail(error, f"clean {log.topic_partition}")
            elif not log.closed:
                self._try_later(log, str(error))
        except StorageError as error:
            self._runtime.log.error("log cleaner skipped an offline directory", error=str(error))
        except Exception as error:
            self._give_up(log, error)

    async def _pass(self, partition: Partition) -> None:
        log = partition.log
        began = self._runtime.clock.monotonic()
        durable = self._logs.checkpoints_of(log).recovery_points.get(log.topic_partition, 0)
        if durable < log.recovery_point:
            # What is compacted must lie below the recovery point on the disk.
            await self._maintenance.checkpoint()
            durable = self._logs.checkpoints_of(log).recovery_points.get(log.topic_partition, 0)
        if partition.is_offline or not log.is_open:
            return
        dirt = self._dirt(partition, durable)
        if not dirt.dirty_bytes:
            self._later[log.topic_partition] = began + self._runtime.config.log_cleaner_backoff_ms / 1000
            return
        sources = segments_before(log, dirt.end)
        swap = SegmentSwap(log, sources)
        job = make_job(log, dirt, sources, self._limits(), self._runtime.clock.wall_ms())
        read = written = 0
        finished = False
        steps = self._workers.run(job)
        try:
            async for step in steps:
                if isinstance(step, PassEnd):
                    finished = True
                    await self._finish(swap, step)
                    self._report(log, step, read, written, self._runtime.clock.monotonic() - began)
                elif await self._take(swap, step):
                    read, written = read + step.read_bytes, written + step.written_bytes
                else:
                    self._runtime.log.info("log changed during cleaning", partition=str(log.topic_partition))
                    return
        finally:
            await steps.aclose()
            if not finished:
                swap.sweep()

    def _limits(self) -> Limits:
        config = self._runtime.config
        workers = max(config.log_cleaner_threads, 1)
        return Limits(
            map_bytes=int(
                config.log_cleaner_dedupe_buffer_size * config.log_cleaner_io_buffer_load_factor / workers
            ),
            io_bytes=config.log_cleaner_io_buffer_size // workers,
            bytes_per_second=config.log_cleaner_io_max_bytes_per_second / workers,
        )

    async def _take(self, swap: SegmentSwap, group: CleanedGroup) -> bool:
        """Swap in what a worker has written. False: the log is not what it was."""
        if group.changed and swap.holds(group):
            await self._runtime.offload(lambda: swap.announce(group))
        if not swap.holds(group):
            swap.discard(group)
            return False
        if group.changed:
            swap.swap(group, self._runtime.clock.wall_ms())
        else:
            swap.discard(group)
        counts = self._counts
        counts.bytes_read += group.read_bytes
        counts.bytes_written += group.written_bytes
        counts.records_read += group.read_records
        counts.records_kept += group.kept_records
        if group.left_as_they_are:
            self._runtime.log.warning(
                "batches whose records cannot be read were left as they are",
                partition=str(swap.log.topic_partition),
                offsets=list(group.left_as_they_are[:10]),
                count=len(group.left_as_they_are),
            )
        return True

    async def _finish(self, swap: SegmentSwap, end: PassEnd) -> None:
        if swap.is_valid:
            saved = self._logs.checkpoints_of(swap.log)
            await self._runtime.offload(saved.take_clean_offset(swap.log, end.clean_until).run)

    def _report(self, log: PartitionLog, end: PassEnd, read: int, written: int, seconds: float) -> None:
        counts = self._counts
        counts.passes += 1
        counts.last_pass_seconds = seconds
        counts.map_utilisation = end.map_utilisation
        self._runtime.log.info(
            "log cleaned",
            partition=str(log.topic_partition),
            clean_until=end.clean_until,
            keys=end.mapped_keys,
            read_bytes=read,
            written_bytes=written,
            seconds=round(seconds, 3),
        )

    # --- what goes wrong ---

    def _give_up(self, log: PartitionLog, error: Exception) -> None:
        """Not to be tried again before a restart: it would end the same way."""
        self._counts.failed_passes += 1
        self.uncleanable[log] = str(error)
        self._runtime.log.error(
            "log cleaning stopped", partition=str(log.topic_partition), error=str(error) or repr(error)
        )

    def _try_later(self, log: PartitionLog, reason: str) -> None:
        self._counts.failed_passes += 1
        now = self._runtime.clock.monotonic()
        self._later[log.topic_partition] = now + self._runtime.config.log_cleaner_backoff_ms / 1000
        self._runtime.log.warning(
            "log cleaning failed; retrying", partition=str(log.topic_partition), error=reason
        )

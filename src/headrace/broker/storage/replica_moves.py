"""Moves replicas between the log directories of this broker (KIP-113), one at a time.

A future replica is filled from the log by a thread, a piece at a time, at most as fast as
`replica.alter.log.dirs.io.max.bytes.per.second` allows. When little is missing the log is closed for a moment
and both change places (log/moving/swap.py). Producers are answered NOT_LEADER_OR_FOLLOWER meanwhile, and
send again. A move that a restart has interrupted begins anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.replicas.throttle import SlidingRate
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.flusher import Flusher
from headrace.broker.storage.integrity import Integrity
from headrace.broker.storage.maintenance import Maintenance
from headrace.broker.storage.quarantine import Quarantine
from headrace.core.errors import CorruptLog, HeadraceError, StorageError
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.log import files
from headrace.log.directory import LogDirectory
from headrace.log.manager import LogManager
from headrace.log.moving.future import DamagedSource, FutureFolder, StalePlan
from headrace.log.moving.plan import CopyPlan, take_plan
from headrace.log.moving.swap import ReplicaSwap
from headrace.log.partition_log import PartitionLog
from headrace.replication.replica import Role

if TYPE_CHECKING:
    from headrace.replication.partition import Partition

PIECE_BYTES: Final = 1024 * 1024
SWAP_BYTES: Final = 1024 * 1024
"""With no more than this missing, nor more than a second's worth of the rate, the log is closed, and the rest
is copied then."""
LOOK_AGAIN_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 1.0


class FutureReplica(NamedTuple):
    partition: TopicPartition
    directory: LogDirectory
    size: int
    lag: int
    """Records behind the replica that it is to take the place of."""


class ReplicaMoves:
    def __init__(
        self,
        runtime: Runtime,
        logs: LogManager,
        partitions: PartitionTable,
        replicas: ReplicaManager,
        flusher: Flusher,
        maintenance: Maintenance,
        integrity: Integrity,
        quarantine: Quarantine,
        threads: Executor | None,
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._partitions = partitions
        self._replicas = replicas
        self._flusher = flusher
        self._maintenance = maintenance
        self._integrity = integrity
        self._quarantine = quarantine
        self._threads = threads
        self._goals: dict[TopicPartition, LogDirectory] = {}
        """Where replicas shall be, in the order in which that was asked for. The first one is being moved."""
        self._future: FutureFolder | None = None
        """Of the first one."""
        self._rate = SlidingRate()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False

    def start(self) -> None:
        self._goals.update(self._logs.interrupted_moves)
        self._task = spawn("replica moves", self._run(), self._runtime.loop)

    async def stop(self) -> None:
        """A swap that has begun is finished. A future replica stays, for the next start to go on with."""
        self._is_stopped = True
        self._changed.set()
        if self._task is not None:
            await asyncio.wait((self._task,))

    # --- what handlers ask ---

    def move(self, partition: Partition, directory: LogDirectory) -> None:
        """Move it there, and nowhere else. If it is there already, it stays."""
        name = partition.topic_partition
        if self._goals.get(name) is directory:
            return
        self._goals.pop(name, None)
        if partition.log.directory is not directory:
            self._goals[name] = directory
        self._changed.set()

    def futures(self) -> Iterator[FutureReplica]:
        for name, directory in list(self._goals.items()):
            partition = self._partitions.find(*name)
            if partition is None or partition.log.directory is directory:
                continue
            future, size, end = self._future, 0, 0
            if future is not None and future.is_of(name, directory):
                size, end = future.size, future.end_offset
            yield FutureReplica(name, directory, size, max(0, partition.log.end_offset - end))

    # --- one after the other ---

    async def _run(self) -> None:
        while not self._is_stopped:
            name = next(iter(self._goals), None)
            if name is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            directory = self._goals[name]
            try:
                is_settled = await self._move(name, directory)
            except Exception as error:  # a mistake of ours must not end all moves
                self._tell_failure(name, directory, error)
                is_settled = True
            if is_settled and self._goals.get(name) is directory:
                del self._goals[name]

    async def _move(self, name: TopicPartition, directory: LogDirectory) -> bool:
        """False: somebody wants something else meanwhile."""
        partition = self._partitions.find(*name)
        if partition is None or not self._may_move(partition, directory):
            return True
        path = f"{directory.path}/{self._logs.unique_name(name, files.FUTURE_DIRECTORY)}"
        future = self._future = FutureFolder(directory, path)
        self._runtime.log.info("replica move started", partition=str(name), directory=directory.path)
        has_moved = False
        try:
            while self._goals.get(name) is directory and self._may_move(partition, directory):
                if self._is_stopped:
                    return False
                if await self._step(partition, future):
                    has_moved = True
                    break
            else:
                is_there = self._partitions.find(*name) is partition  # or it was deleted
                if is_there and self._goals.get(name) is directory:
                    raise StorageError("one of both log directories is offline")
        except HeadraceError as error:
            self._tell_failure(name, directory, error)
            if isinstance(error, DamagedSource):
                self._integrity.doubt(partition, error.offset)
        finally:
            self._future = None
        if not has_moved:
            await self._offload(future.remove)
        return has_moved or self._goals.get(name) is directory

    def _may_move(self, partition: Partition, directory: LogDirectory) -> bool:
        hosted = self._partitions.find(*partition.topic_partition)
        return hosted is partition and not partition.is_offline and directory.is_online

    async def _step(self, partition: Partition, future: FutureFolder) -> bool:
        """Copy a piece, or, if little is missing, change places. True: the replica has moved."""
        log = partition.log
        if not log.is_open or log.doubtful is not None:
            await self._pause(LOOK_AGAIN_SECONDS)  # it is being truncated, or yet to be compared (rule 13)
            return False
        began = self._runtime.clock.monotonic()
        rate = self._runtime.config.replica_alter_log_dirs_io_max_bytes_per_second
        early = self._rate.seconds_over(rate, began)
        if early > 0:
            await self._pause(min(early, LONGEST_PAUSE_SECONDS))  # the rate may be raised meanwhile
            return False
        plan = take_plan(log)
        if future.lacks(plan) <= min(SWAP_BYTES, rate) and future.is_made:
            if self._logs.is_leaving(partition.topic_partition):
                await self._pause(LOOK_AGAIN_SECONDS)
                return False
            return await self._swap(partition, future)
        try:
            await self._offload(partial(future.copy, plan, max(1, min(PIECE_BYTES, rate))))
        except StalePlan:
            return False
        except DamagedSource:
            if not _is_current(plan, log):
                return False  # another segment has come in the place of the one that was being read
            raise
        now = self._runtime.clock.monotonic()
        self._rate.record(future.take_copied(), now)
        # At least as long as it took: whoever copies takes the processor from the loop.
        await self._pause(now - began)
        return False

    async def _swap(self, partition: Partition, future: FutureFolder) -> bool:
        log, clock = partition.log, self._runtime.clock
        before = log.directory
        swap = ReplicaSwap(self._logs, log, future, partition.high_watermark, clock.wall_ms())
        try:
            await self._offload(swap.run)
            if swap.switch():
                await self._settle(partition, swap)
        finally:
            self._rate.record(future.take_copied(), clock.monotonic())
            partition.on_truncated(clock.monotonic(), clock.wall_ms())
            self._go_on(partition)
        if swap.has_moved:
            self._runtime.log.info(
                "replica moved",
                partition=str(partition.topic_partition),
                directory=future.directory.path,
                from_directory=before.path,
            )
            await self._checkpoint(partition.topic_partition, future.directory)
        return swap.has_moved

    async def _settle(self, partition: Partition, swap: ReplicaSwap) -> None:
        try:
            await self._offload(swap.settle)
        except StorageError as error:
            # A start might find the old folder alone. So nothing may be added to the new one.
            if not partition.log.closed:
                self._quarantine.give_up(partition, CorruptLog(f"{partition.log.path}: {error}"))

    def _go_on(self, partition: Partition) -> None:
        """The log is open again, in one directory or the other."""
        self._flusher.on_moved(partition.log)
        if partition.is_offline:
            return
        partition.on_synced()
        if partition.role == Role.FOLLOWER:
            self._replicas.follow(partition)
        else:
            self._replicas.unfollow(partition)
        self._replicas.directories.consider(partition)

    async def _checkpoint(self, name: TopicPartition, directory: LogDirectory) -> None:
        """After it no checkpoint is written any more that was taken before the replica was here."""
        try:
            await self._maintenance.checkpoint()
        except StorageError as error:
            self._runtime.log.error("log maintenance skipped an offline directory", error=str(error))
        if name not in self._logs.quarantined:
            self._logs.checkpoints_in(directory).kept.discard(name)

    # --- waiting ---

    async def _offload(self, call: Callable[[], object]) -> None:
        await self._runtime.loop.run_in_executor(self._threads, call)

    async def _pause(self, seconds: float) -> None:
        """Shorter if somebody wants something else meanwhile."""
        self._changed.clear()
        if seconds <= 0 or self._is_stopped:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    def _tell_failure(self, name: TopicPartition, directory: LogDirectory, error: Exception) -> None:
        is_ours = not isinstance(error, HeadraceError)
        self._runtime.log.error(
            "replica not moved",
            partition=str(name),
            directory=directory.path,
            error=repr(error) if is_ours else str(error),
            exc_info=error if is_ours else None,
        )


def _is_current(plan: CopyPlan, log: PartitionLog) -> bool:
    there = {id(segment) for segment in log.segments}
    return plan.truncations == log.truncations and all(id(each.segment) in there for each in plan.sources)

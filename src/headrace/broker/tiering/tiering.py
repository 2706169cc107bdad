"""History of partitions in an object store: what this broker copies, keeps on its disk, deletes and reads.

The threads are here; what to do decides `headrace.tier`. A broker without a store has none of this.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.replicas.host import ReplicaHost
from headrace.broker.tiering.chunks import ChunkCache
from headrace.broker.tiering.fork_scan import BatchScanner
from headrace.broker.tiering.history import PartitionHistory
from headrace.broker.tiering.jobs import TierJobs
from headrace.broker.tiering.partial_uploads import UploadSweeper
from headrace.broker.tiering.remote_reads import RemoteReads
from headrace.broker.tiering.thread_limit import LimitedThreads
from headrace.config.health import (
    TIER_FAILURE,
    TIER_LATE_AFTER_SECONDS,
    TIER_LATE_SECONDS,
    TIER_PROBLEM,
    TIER_STOPPED,
)
from headrace.config.tiering import fork_point
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.metrics.tiering import TierGauges
from headrace.tier.forking import Fork
from headrace.tier.jobs import Place
from headrace.tier.names import Folder, TieredPartition

if TYPE_CHECKING:
    from headrace.broker.storage.integrity import Integrity
    from headrace.controller.delta import MetadataDelta
    from headrace.controller.topic_image import TopicImage
    from headrace.core.ports_objects import ObjectStore
    from headrace.replication.assignment import Assignment
    from headrace.replication.partition import Partition

PARTITIONS_PER_TURN: Final = 50
STOPPED_TOLD: Final = 20


class Tiering:
    def __init__(
        self,
        parts: ReplicaHost,
        integrity: Integrity,
        host: Callable[[TopicImage, Iterable[int]], None],
        store: ObjectStore,
        threads: LimitedThreads,
        read_threads: LimitedThreads,
    ) -> None:
        runtime = self._runtime = parts.runtime
        self._metadata = parts.metadata
        self._partitions = parts.partitions
        self._integrity = integrity
        self._truncations = parts.truncations
        self._host = host
        config = runtime.config
        cache = ChunkCache(runtime.disk, config.data_directories[0], config.headrace_tier_cache_bytes)
        self.reads = RemoteReads(runtime, store, read_threads, cache)
        self._jobs = TierJobs(runtime, store, threads, self._on_damage)
        self._uploads = UploadSweeper(runtime, store, read_threads, lambda: self._metadata.cluster_id)
        self._histories: dict[Partition, PartitionHistory] = {}
        self._task: asyncio.Task[None] | None = None
        self._deleted: dict[PartitionHistory, None] = {}
        """Of deleted topics, until nothing is left of them."""
        self._beginning: dict[PartitionHistory, asyncio.Task[None]] = {}
        self._told_stopped: dict[PartitionHistory, str] = {}

    def start(self) -> None:
        self._metadata.store.subscribe(self._on_delta)
        self._runtime.metrics.read_tiers = self.gauges
        health = self._runtime.health
        health.add(
            "tier.copy_lag_segments", self._lag_segments, "Sealed segments not yet in the object store."
        )
        health.add(TIER_PROBLEM, self._problem, "What is wrong with history in the object store.")
        health.add(TIER_LATE_SECONDS, self._late_seconds, "How long the oldest segment waits for the store.")
        health.add(TIER_FAILURE, self._failure, "Why the last call of the object store failed.")
        health.add(TIER_STOPPED, self._stopped, "Partitions whose history is not kept up, and why.")
        self._task = spawn("tiering", self._run(), self._runtime.loop)

    async def stop(self) -> None:
        running = self._jobs.stop()
        tasks = [*self._beginning.values(), *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for future in running:
            future.cancel()  # of those that have not begun; whoever reads the manifest next finds the rest

    # --- which partitions ---

    def consider(self, partition: Partition) -> None:
        """Its row, or its topic's settings, may have changed. Called before anybody reads it."""
        history = self._histories.get(partition)
        if history is None:
            if not partition.log.config.remote_storage_enable:
                return
            history = self._histories[partition] = self._open(partition)
            partition.history = history
        history.follow_role()
        self._advance(history)

    def _on_delta(self, delta: MetadataDelta) -> None:
        """Whoever led a partition of a deleted topic deletes its history."""
        removed = {each.topic_id for each in delta.removed_topics}
        for partition, history in list(self._histories.items()) if removed else ():
            if partition.topic_id in removed:
                leads = history.leads
                self._forget(partition)
                if leads:
                    history.delete()
                    self._deleted[history] = None
                    self._jobs.advance(history, history.local())

    def history_of(self, partition: Partition) -> PartitionHistory:
        """Of one that has a history."""
        return self._histories[partition]

    def _open(self, partition: Partition) -> PartitionHistory:
        tiered = TieredPartition(partition.topic_id, partition.topic_partition.partition)
        place = Place(Folder.of(self._metadata.cluster_id, tiered), tiered, fork=_fork_of(partition))
        return PartitionHistory(partition, place, self._runtime.config, self._draw, self._advance)

    def _draw(self) -> UUID:
        return UUID(bytes=self._runtime.random.randbytes(16), version=4)

    def _is_ours(self, partition: Partition) -> bool:
        return self._partitions.find(*partition.topic_partition) is partition

    def _forget(self, partition: Partition) -> None:
        history = self._histories.pop(partition)
        self._told_stopped.pop(history, None)
        self.reads.forget(history)
        partition.history = None

    # --- by the clock ---

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._runtime.config.remote_log_manager_task_interval_ms / 1000)
            for partition in list(self._partitions):
                if partition.log.config.remote_storage_enable:
                    self.consider(partition)
            for count, (partition, history) in enumerate(list(self._histories.items()), 1):
                try:
                    if not self._is_ours(partition):
                        self._forget(partition)
                        continue
                    history.update_settings(self._runtime.config)
                    self._look_at(history)
                    await self._delete_locally(history)
                except Exception as error:
                    self._runtime.log.error(
                        "tiering failed; continuing",
                        partition=str(partition.topic_partition),
                        error=repr(error),
                        exc_info=error,
                    )
                if count % PARTITIONS_PER_TURN == 0:
                    await asyncio.sleep(0)
            for history in list(self._deleted):
                self._advance(history)
            led = {each.machine.place.partition: each.led_epoch for each in self._histories.values()}
            if any(epoch >= 0 for epoch in led.values()):
                self._uploads.tick(led)

    def _advance(self, history: PartitionHistory) -> None:
        if history in self._deleted:
            self._jobs.advance(history, history.local())
            if history.machine.is_purged:
                del self._deleted[history]
            return
        log = history.partition.log
        if history.partition.history is history and log.is_open and not history.partition.is_offline:
            self._jobs.advance(history, history.local())
            if history.claims_epoch >= 0 and history not in self._beginning:
                self._become_fit(history)
            elif history.wants_begin and not history.machine.must_read and history not in self._beginning:
                self._begin_behind_store(history)

    def may_lead(self, partition: Partition, row: Assignment) -> bool:
        """Rule 14: a leader that was not in sync first writes the manifest as its own, and begins where the
        store ends unless its log has the same epochs. So does the first leader of a fork, which makes its
        manifest of its origin's. Until then nobody leads."""
        if not partition.log.config.remote_storage_enable:
            return True
        if not row.recovering and not _is_fork_to_begin(partition):
            return True
        history = self._histories.get(partition)
        if history is None:
            history = self._histories[partition] = partition.history = self._open(partition)
        if history.claim(row.leader_epoch):
            return True
        partition.resign()
        waiting = "leader outside the ISR waits for the object store"
        if not row.recovering:
            waiting = "fork waits for the object store"
        self._runtime.log.info(waiting, partition=str(partition.topic_partition))
        self._advance(history)
        return False

    def _become_fit(self, history: PartitionHistory) -> None:
        partition = history.partition
        if history.become_fit():
            topic = self._metadata.image.topic_by_id(partition.topic_id)
            if topic is not None:
                self._host(topic, [partition.topic_partition.partition])
        elif history.begin_at_end is not None:
            self._begin_behind_store(history)

    def _begin_behind_store(self, history: PartitionHistory) -> None:
        name = f"the beginning of {history.partition.topic_partition}"
        task = self._beginning[history] = spawn(name, self._begin(history), self._runtime.loop)
        task.add_done_callback(lambda _: self._beginning.pop(history, None))

    async def _begin(self, history: PartitionHistory) -> None:
        partition = history.partition
        try:
            beginning = await self.reads.beginning(history)
        except HeadraceError as error:
            history.wants_begin = False  # the leader refuses it again, and so it is tried again
            self._runtime.log.warning(
                "log not begun behind the object store",
                partition=str(partition.topic_partition),
                error=str(error),
            )
            return
        if self._is_ours(partition) and history.begin_at(beginning):
            self._runtime.log.info(
                "log begins behind the object store",
                partition=str(partition.topic_partition),
                offset=beginning.offset,
            )
            self._truncations.begin(partition)

    def _look_at(self, history: PartitionHistory) -> None:
        self._advance(history)
        why, told = history.machine.stopped, self._told_stopped.get(history)
        if why is not None and why != told:
            self._told_stopped[history] = why
            self._runtime.log.error(
                "history is neither extended nor shortened",
                partition=str(history.partition.topic_partition),
                reason=why,
            )
        elif why is None and told is not None:
            del self._told_stopped[history]

    async def _delete_locally(self, history: PartitionHistory) -> None:
        log, now_ms = history.partition.log, self._runtime.clock.wall_ms()
        if not log.is_open or not log.directory.is_online or not log.config.remote_storage_enable:
            return
        job = history.take_local_retention(now_ms)
        if job is None:
            return
        await self._runtime.loop.run_in_executor(None, job.run)
        removed = job.done(now_ms)
        if removed:
            self._runtime.log.info(
                "local segments removed, they are in the object store",
                partition=str(history.partition.topic_partition),
                segments=removed,
                local_log_start_offset=log.log_start_offset,
            )

    def _on_damage(self, history: PartitionHistory, offset: int) -> None:
        if self._is_ours(history.partition):
            self._integrity.doubt(history.partition, max(offset, history.partition.log.log_start_offset))

    # --- what people ask ---

    def _lag_segments(self) -> int:
        return sum(tier.copy_lag_segments for tier in self.gauges())

    def _late_seconds(self) -> int:
        return int(max((tier.oldest_lag_seconds for tier in self.gauges()), default=0.0))

    def _failure(self) -> str:
        running = [each for each in self._histories.values() if each.machine.stopped is None]
        failures = (each.failure for each in running if each.failure)
        return next(failures, self._uploads.failure)

    def _stopped(self) -> str:
        stopped = {
            str(partition.topic_partition): history.machine.stopped
            for partition, history in self._histories.items()
            if history.machine.stopped is not None
        }
        return json.dumps(dict(sorted(stopped.items())[:STOPPED_TOLD]))

    def _problem(self) -> str | None:
        tiers = self.gauges()
        stopped = sum(tier.stopped for tier in tiers)
        if stopped:
            return (
                f"{stopped} partitions neither extend nor shorten their history in the object store: the"
                " broker's log says why"
            )
        oldest = max((tier.oldest_lag_seconds for tier in tiers), default=0.0)
        if oldest > TIER_LATE_AFTER_SECONDS:
            return (
                f"segments wait for the object store since {oldest / 60:.0f} minutes: look at the store, and"
                " at remote.log.manager.copy.max.bytes.per.second"
            )
        return None

    def led(self) -> list[PartitionHistory]:
        """Of the partitions that this broker leads now."""
        return [history for partition, history in self._histories.items() if partition.is_leader]

    def gauges(self) -> list[TierGauges]:
        by_topic: dict[str, list[PartitionHistory]] = {}
        for partition, history in self._histories.items():
            if partition.is_leader:
                by_topic.setdefault(partition.topic_partition.topic, []).append(history)
        now = self._runtime.clock.monotonic()
        return [_gauges(topic, histories, now) for topic, histories in by_topic.items()]


def _fork_of(partition: Partition) -> Fork | None:
    point = fork_point(partition.log.config.headrace_tier_fork)
    number = partition.topic_partition.partition
    if point is None or number >= len(point.offsets):
        return None  # a partition that came later has no origin
    return Fork(point.origin, point.offsets[number], BatchScanner)


def _is_fork_to_begin(partition: Partition) -> bool:
    """A fork's log begins where its manifest ends. As long as it holds nothing, that may have to be made."""
    return partition.log.end_offset == 0 and _fork_of(partition) is not None


def _gauges(topic: str, histories: list[PartitionHistory], now: float) -> TierGauges:
    lags = [history.lag(now) for history in histories]
    manifests = [history.manifest for history in histories]
    return TierGauges(
        topic,
        sum(lag.size for lag in lags),
        sum(lag.segments for lag in lags),
        max((lag.age_seconds for lag in lags), default=0.0),
        sum(manifest.size for manifest in manifests if manifest is not None),
        sum(history.machine.stopped is not None for history in histories),
    )

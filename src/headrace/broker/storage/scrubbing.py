"""The scrub: reads every sealed segment once in a while, to find damage before somebody needs what it hit.

One thread, one piece at a time, with a pause after each: so many bytes a second, and fewer while the event
loop is late, because then the broker has more to do than to look after itself. A pass goes through the
partitions by name. How far it is survives a restart, so that a broker that is restarted every day still comes
to the end of a pass. Damage goes the way of all damage (`integrity.py`), of leaders and followers alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.integrity import Integrity
from headrace.core.failures import report
from headrace.core.tasks import spawn
from headrace.log import scrub
from headrace.log.scrub import Checkpoint, Cursor, Round, SegmentScrub

if TYPE_CHECKING:
    from headrace.core.ids import TopicPartition
    from headrace.replication.partition import Partition

T = TypeVar("T")

FIRST_PAUSE_SECONDS: Final = 60.0
"""After a start there is enough to read."""
LONGEST_SLEEP_SECONDS: Final = 10.0
"""Settings may change meanwhile."""
LATE_INTERVALS: Final = 4
LATE_SECONDS: Final = 0.05
LATE_FACTOR: Final = 4.0
SAVED_EVERY_SECONDS: Final = 30.0
NAMED_RANGES: Final = 3
"""Of damage, by name in what `headrace cluster status` says; the log of the broker names all."""
COUNTED_AT_ONCE: Final = 100
"""Partitions in one turn of the loop."""


class Scrubbing:
    def __init__(
        self, runtime: Runtime, metadata: MetadataCache, partitions: PartitionTable, integrity: Integrity
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._partitions = partitions
        self._integrity = integrity
        self._counts = runtime.metrics.scrub
        self._threads = ThreadPoolExecutor(1, "scrub")
        self._task: asyncio.Task[None] | None = None
        self._state = scrub.NEVER
        self._saved_at = 0.0
        self._round = Round()
        runtime.health.add("scrub.last.pass.ms", lambda: self._counts.last_pass_ms, _LAST_PASS)
        runtime.health.add("scrub.pass.percent", self._percent, _PROGRESS)
        runtime.health.add("problem.damage", self._damage_problem, _UNMENDED)
        runtime.health.add("problem.scrub", self._overdue_problem, _OVERDUE)
        runtime.health.add("log.damage.found", lambda: self._counts.damage_found, _DAMAGE)

    def start(self) -> None:
        self._task = spawn("the scrub", self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            await self._save()
        self._threads.shutdown(wait=False)

    # --- what it tells ---

    def _percent(self) -> int | None:
        is_on = self._runtime.config.headrace_log_scrub_bytes_per_second
        return int(100 * self._counts.pass_progress) if is_on else None

    def _damage_problem(self) -> str | None:
        refused = sorted(self._integrity.unmended())
        if not refused:
            return None
        more = f" and {len(refused) - NAMED_RANGES} more" if len(refused) > NAMED_RANGES else ""
        named = [
            f"{partition} offsets {damage.offset} to {damage.end_offset - 1}"
            for partition, damage in refused[:NAMED_RANGES]
        ]
        return ", ".join(named) + more

    def _overdue_problem(self) -> str | None:
        config, ended_ms = self._runtime.config, self._counts.last_pass_ms
        age_ms = self._runtime.clock.wall_ms() - ended_ms
        if (
            not (ended_ms and config.headrace_log_scrub_bytes_per_second)
            or age_ms < LATE_INTERVALS * config.headrace_log_scrub_interval_ms
        ):
            return None
        return (
            f"the last whole scrub ended {age_ms / 86_400_000:.1f} days ago;"
            " raise headrace.log.scrub.bytes.per.second"
        )

    # --- when ---

    async def _run(self) -> None:
        self._state = await self._in_thread(scrub.load_checkpoint, self._runtime.disk, self._directory())
        self._counts.last_pass_ms = self._state.ended_ms
        self._counts.pass_progress = 0.0 if self._state.cursor is not None else 1.0
        interval = self._runtime.config.headrace_log_scrub_interval_ms / 1000
        await asyncio.sleep(min(FIRST_PAUSE_SECONDS, interval))
        while True:
            self._integrity.consider_mending()
            if self._runtime.config.headrace_log_scrub_bytes_per_second and self._is_due():
                try:
                    await self._pass()
                except Exception as error:
                    report("a pass of the scrub", error)
            await asyncio.sleep(self._until_next())

    def _is_due(self) -> bool:
        if self._state.cursor is not None:
            return True
        interval = self._runtime.config.headrace_log_scrub_interval_ms
        return self._runtime.clock.wall_ms() - self._state.began_ms >= interval

    def _until_next(self) -> float:
        config = self._runtime.config
        return min(LONGEST_SLEEP_SECONDS, max(config.headrace_log_scrub_interval_ms / 1000, 0.1))

    def _directory(self) -> str:
        return self._metadata.partition.log.directory.path

    # --- a pass ---

    async def _pass(self) -> None:
        now = self._runtime.clock.wall_ms()
        cursor = self._state.cursor
        if cursor is None:
            self._state = Checkpoint(now, self._state.ended_ms, Cursor("", 0, 0))
            cursor = Cursor("", 0, 0)
        names = sorted(partition.topic_partition for partition in self._partitions)
        sizes = await self._sealed_sizes(names)
        self._round = Round(sum(sizes))
        for name, size in zip(names, sizes, strict=True):
            if (name.topic, name.partition) >= cursor[:2]:
                start = cursor.base_offset if (name.topic, name.partition) == cursor[:2] else 0
                partition = self._partitions.find(*name)
                if partition is not None and not await self._scrub_log(partition, start):
                    return  # turned off meanwhile
            self._round.end_log(size)
        ended = self._runtime.clock.wall_ms()
        self._state = Checkpoint(self._state.began_ms, ended, None)
        self._counts.last_pass_ms, self._counts.pass_progress = ended, 1.0
        self._runtime.log.info(
            "scrub completed", partitions=len(names), damage_found=self._counts.damage_found
        )
        await self._save()

    async def _sealed_sizes(self, names: list[TopicPartition]) -> list[int]:
        sizes = []
        for count, name in enumerate(names):
            partition = self._partitions.find(*name)
            sizes.append(0 if partition is None else _sealed_bytes(partition))
            if not count % COUNTED_AT_ONCE:
                await asyncio.sleep(0)
        return sizes

    async def _scrub_log(self, partition: Partition, start: int) -> bool:
        """False: the scrub was turned off."""
        log = partition.log
        self._note_progress(_sealed_bytes(partition, start))
        at = start
        while not log.closed and log.directory.is_online:
            segment = next((each for each in log.segments[:-1] if each.base_offset >= at), None)
            if segment is None:
                break
            self._state = self._state._replace(cursor=Cursor(*partition.topic_partition, segment.base_offset))
            if not await self._scrub_segment(partition, SegmentScrub(log, segment)):
                return False
            at = segment.base_offset + 1
        return True

    async def _scrub_segment(self, partition: Partition, job: SegmentScrub) -> bool:
        try:
            while job.holds and not job.is_over:
                rate = self._runtime.config.headrace_log_scrub_bytes_per_second
                if not rate:
                    return False
                try:
                    size = await self._in_thread(job.run)
                except OSError as error:
                    if job.holds:
                        self._integrity.on_unreadable(partition, job.segment, error)
                    return True
                self._counts.bytes_read += size
                self._note_progress(size)
                if job.fault is not None and job.holds:
                    await self._integrity.look_at(partition, job.segment, job.fault.position)
                await self._pause(size / rate)
        finally:
            job.close()
        return True

    def _note_progress(self, verified: int) -> None:
        self._round.note(verified)
        self._counts.pass_progress = self._round.share

    async def _pause(self, seconds: float) -> None:
        clock = self._runtime.clock
        until = clock.monotonic() + seconds
        await asyncio.sleep(seconds)
        late = clock.monotonic() - until
        if late > LATE_SECONDS:
            await asyncio.sleep(LATE_FACTOR * late)
        if clock.monotonic() - self._saved_at > SAVED_EVERY_SECONDS:
            await self._save()

    async def _save(self) -> None:
        self._saved_at = self._runtime.clock.monotonic()
        try:
            await self._in_thread(scrub.save_checkpoint, self._runtime.disk, self._directory(), self._state)
        except OSError as error:
            self._runtime.log.warning("scrub checkpoint not written", error=str(error))

    async def _in_thread(self, call: Callable[..., T], *args: object) -> T:
        return await self._runtime.loop.run_in_executor(self._threads, call, *args)


def _sealed_bytes(partition: Partition, until: int | None = None) -> int:
    """Of all sealed segments, or of those that begin before an offset."""
    sealed = partition.log.segments[:-1]
    return sum(each.size for each in sealed if until is None or each.base_offset < until)


_LAST_PASS: Final = "when the scrub last came to the end of all sealed segments, in ms since 1970; 0: never"
_PROGRESS: Final = (
    "how much of all sealed bytes the scrub's pass has verified; 100 between two; not told while off"
)
_UNMENDED: Final = "offsets that readers are refused: damaged here, and no other replica in sync gave them"
_OVERDUE: Final = "that the last whole pass of the scrub is long ago"
_DAMAGE: Final = "damaged places found in segments since the start"

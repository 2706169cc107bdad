"""Finds damage in data that was good once, and sees to it that nobody is given what is damaged.

A bit that flips on a disk is noticed when the range is read from it: the thread that brings a cold range into
memory checks it on the way, and what it finds is given to nobody. It is also noticed when a reader asks for
the same records again and again, because it refuses what it gets, and by the scrub (`scrubbing.py`), which
reads what nobody asks for. Whoever finds it has read the range twice before anything is believed.

A damaged range is given to nobody, and nothing is deleted because of it. If another replica has it, it is
mended from there (`mending.py`). Where that cannot be, the replica is given up (`quarantine.py`). But only
once another replica has given the whole range (`other_copies.py`): to be alive and in sync proves nothing of
its disk. As long as the others refuse it, or cannot be asked, the partition stays where it is: the damaged
range answers with an error, everything else is served, and they are asked again later.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.mending import Mending
from headrace.broker.storage.other_copies import Copies, OtherCopies
from headrace.broker.storage.quarantine import Quarantine
from headrace.core.errors import CorruptLog
from headrace.core.failures import report
from headrace.core.ids import NO_BROKER, TopicPartition
from headrace.core.ports import FileRange
from headrace.core.tasks import spawn
from headrace.core.timers import Timer
from headrace.log import files
from headrace.log.index_repair import IndexRepair
from headrace.log.read_ahead import MAX_RANGE_BYTES, ReadAhead
from headrace.log.read_state import Damage
from headrace.log.scan import verify_range
from headrace.log.segment import Segment
from headrace.network.page_cache import PageCache

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog
    from headrace.replication.partition import Partition

NEXT_STEP = (
    "stop the broker and run `headrace log verify DIRECTORY`; restore the file from a backup, or give the"
    " records up with `headrace topic trim`"
)
LOOK_AGAIN_SECONDS: Final = 5.0
"""Until it is asked once more whether another replica can mend what is damaged here."""
SECOND_QUESTION_SECONDS: Final = 2.0
"""Before a leader gives itself up it asks twice. A follower that is damaged elsewhere gives itself up at
once, for this leader has that whole; without the pause both would be gone."""


def verify(part: FileRange) -> None:
    """Raises CorruptLog. For a thread."""
    verify_range(part.file, part.position, part.length)


def _refused(log: PartitionLog, segment: Segment) -> list[Damage]:
    """What of a segment is damaged and still a part of its log: deleted records are nobody's loss."""
    if log.closed or segment.reads is None or segment not in log.segments:
        return []
    return [damage for damage in segment.reads.damage if damage.end_offset > log.log_start_offset]


class _Unmended:
    """A segment with damage that is not mended."""

    __slots__ = ("copies", "has_waited", "partition", "told", "was_tried")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.was_tried = False
        """Whether others were asked for it in vain: readers are refused it for longer than a moment."""
        self.has_waited = False
        """For the leader to say that all of the segment is committed."""
        self.copies = Copies.UNKNOWN
        self.told = ""
        """Why it was not mended, as the log says. It is not said again and again."""


class Integrity:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        partitions: PartitionTable,
        quarantine: Quarantine,
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._partitions = partitions
        self._quarantine = quarantine
        self._copies = OtherCopies(runtime, metadata)
        self._mending = Mending(runtime, metadata, self._copies)
        self._checking: dict[TopicPartition, asyncio.Future[None]] = {}
        self._unmended: dict[Segment, _Unmended] = {}
        self._asking: dict[Segment, asyncio.Task[None]] = {}
        """Whether other replicas have what is damaged here."""
        self._timer: Timer | None = None
        self._is_stopping = False

    def watch(self, page_cache: PageCache) -> None:
        """Check also what has left memory between the answer and its sending."""
        page_cache.verify = verify
        page_cache.on_cold = self._on_cold
        page_cache.on_damage = self._on_cold_damage

    def _on_cold(self, part: FileRange) -> None:
        """What is sent is verified, and no more: the rest of the segment is not taken for what it was."""
        holder = self._holder(part)
        if holder is not None:
            holder[1].distrust()

    def _on_cold_damage(self, part: FileRange) -> None:
        holder = self._holder(part)
        if holder is not None:
            self.look_at(*holder, part.position)

    def _holder(self, part: FileRange) -> tuple[Partition, Segment] | None:
        """Whose file it is; None if it was let go meanwhile."""
        for partition in self._partitions:
            for segment in partition.log.segments:
                if segment.open_file is part.file:
                    return partition, segment
        return None

    def doubt(self, partition: Partition, offset: int) -> asyncio.Future[None]:
        """Somebody could not use what is at `offset`: look. The future ends when something was done."""
        log = partition.log
        if log.closed or not log.log_start_offset <= offset < log.end_offset:
            nothing = self._runtime.loop.create_future()
            nothing.set_result(None)
            return nothing
        segment = next(
            (each for each in reversed(log.segments) if each.base_offset <= offset), log.segments[0]
        )
        segment.distrust()
        return self._look(partition, ReadAhead(log, segment, offset, MAX_RANGE_BYTES))

    def look_at(self, partition: Partition, segment: Segment, position: int) -> asyncio.Future[None]:
        """The same of the batch at `position`. The future ends when something was done about it."""
        segment.distrust()
        return self._look(partition, ReadAhead.at(partition.log, segment, position))

    def _look(self, partition: Partition, job: ReadAhead) -> asyncio.Future[None]:
        name = partition.topic_partition
        checking = self._checking.get(name)
        if checking is not None:
            return checking
        over = self._checking[name] = self._runtime.loop.create_future()
        future = self._runtime.loop.run_in_executor(None, job.run)

        def on_done(done: asyncio.Future[None]) -> None:
            self._checking.pop(name, None)
            try:
                self.on_read_ahead(partition, job, done.exception())
            finally:
                over.set_result(None)

        future.add_done_callback(on_done)
        return over

    # --- what threads have found ---

    def on_read_ahead(self, partition: Partition, job: ReadAhead, error: BaseException | None) -> None:
        """A range was read from the disk, or could not be."""
        log = job.log
        if not job.holds:
            return
        if isinstance(error, OSError):
            self.on_unreadable(partition, job.segment, error)
        elif error is not None:
            report(f"a check of {log.topic_partition}", error)
        else:
            for damage in job.done():
                self.on_damage(partition, job.segment, damage)
            if job.index_is_wrong and job.holds:
                self._repair_index(partition, job.segment)

    def on_unreadable(self, partition: Partition, segment: Segment, error: OSError) -> None:
        """The file of a segment that is a part of its log cannot be opened or read."""
        log = partition.log
        if error.errno == errno.ENOENT:
            end_offset = log.last_offset_of(segment) + 1
            missing = Damage(0, segment.size, segment.base_offset, end_offset, "the file is missing")
            self.on_damage(partition, segment, missing)
        else:
            # Not damaged but not to be had: as with every other error of a disk, all of it is out of use.
            log.directory.fail(error, f"read {log.topic_partition}")

    def on_damage(self, partition: Partition, segment: Segment, damage: Damage) -> None:
        """Somebody has read it twice, and it is not what was written."""
        log = partition.log
        if log.closed or (segment in self._still_unmended() and damage in segment.read_state().damage):
            return  # a file that is missing is missed by everybody who wants it
        self._runtime.metrics.scrub.damage_found += 1
        path = segment.path(files.LOG)
        told = {
            "partition": str(partition.topic_partition),
            "file": path,
            "position": damage.position,
            "offset": damage.offset,
            "reason": damage.reason,
        }
        segment.read_state().note_damage(damage)
        unmended = self._unmended.setdefault(segment, _Unmended(partition))
        self._look_again_later()  # a mending ends unheard if the log is truncated meanwhile
        if self.is_elsewhere(partition):
            self._runtime.log.error("log segment damaged", **told)
            if not unmended.was_tried and not self._is_attended_to(segment):
                self._mend(partition, segment)
            return
        unmended.was_tried = True
        self._runtime.log.error(
            "log segment damaged; no other replica is in sync, the rest of the partition is served",
            **told,
            damaged_until=damage.end,
            next_step=NEXT_STEP,
        )

    def _mend(self, partition: Partition, segment: Segment) -> None:
        failed = partial(self._not_mended, partition, segment)
        if not self._mending.begin(partition, segment, failed):
            failed("")

    def _not_mended(self, partition: Partition, segment: Segment, why: str) -> None:
        unmended = self._unmended.get(segment)
        if unmended is None or self._is_stopping:
            return
        if why and why != unmended.told:
            unmended.told = why
            self._runtime.log.warning(
                "log segment repair failed", partition=str(partition.topic_partition), error=why
            )
        if not unmended.has_waited and self._may_soon_be_committed(unmended.partition, segment):
            unmended.has_waited = True  # the next look mends it, and nothing else has to be fetched
            return
        self._ask(segment, self._give_up_if_elsewhere(unmended, segment))

    def _may_soon_be_committed(self, partition: Partition, segment: Segment) -> bool:
        """A follower hears of what is committed with its next fetch, or the one after."""
        return not partition.is_leader and partition.high_watermark <= partition.log.last_offset_of(segment)

    def _ask(self, segment: Segment, question: Coroutine[None, None, None]) -> None:
        name = f"asking for copies of {segment.path(files.LOG)}"
        task = self._asking[segment] = spawn(name, question, self._runtime.loop)

        def on_done(done: asyncio.Task[None]) -> None:
            if self._asking.get(segment) is done:  # a question may end with the next one
                del self._asking[segment]

        task.add_done_callback(on_done)

    async def _give_up_if_elsewhere(self, unmended: _Unmended, segment: Segment) -> None:
        """It cannot be mended by parts. The replica is worth less than nothing only if another has all."""
        partition = unmended.partition
        if await self._is_whole_elsewhere(unmended, segment) and partition.is_leader:
            await asyncio.sleep(SECOND_QUESTION_SECONDS)
            await self._is_whole_elsewhere(unmended, segment)
        refused = _refused(partition.log, segment)
        if not refused:
            return
        if unmended.copies == Copies.WHOLE:
            if partition.log.truncation is None:
                path = segment.path(files.LOG)
                problem = f"{path}: position {refused[0].position}: {refused[0].reason}"
                self._quarantine.give_up(partition, CorruptLog(problem))
        elif not unmended.was_tried:
            unmended.was_tried = True
            self._runtime.log.error(
                "damaged records refused; no other replica gives them, the rest of the partition is served",
                partition=str(partition.topic_partition),
                offset=refused[0].offset,
                next_step=f"start a broker that has them whole; else {NEXT_STEP}",
            )

    async def _is_whole_elsewhere(self, unmended: _Unmended, segment: Segment) -> bool:
        partition = unmended.partition
        damages = _refused(partition.log, segment)
        unmended.copies = await self._copies.of(partition, damages) if damages else Copies.UNKNOWN
        return unmended.copies == Copies.WHOLE

    async def _mend_if_elsewhere(self, unmended: _Unmended, segment: Segment) -> None:
        """Before all of the segment is surveyed once more."""
        if await self._is_whole_elsewhere(unmended, segment) and _refused(unmended.partition.log, segment):
            self._mend(unmended.partition, segment)

    def _look_again_later(self) -> None:
        """A replica that comes into sync can mend it, and followers may wait behind the damage."""
        if self._timer is None and not self._runtime.is_standalone:
            self._timer = self._runtime.timers.after(
                LOOK_AGAIN_SECONDS, "a look at damaged segments", self._look_again
            )

    def _look_again(self) -> None:
        self._timer = None
        self.consider_mending()
        if self._still_unmended():
            self._look_again_later()

    async def stop(self) -> None:
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._asking.values():
            task.cancel()
        await self._mending.stop()

    def unmended(self) -> list[tuple[TopicPartition, Damage]]:
        """Damaged ranges that readers are refused."""
        return [
            (unmended.partition.topic_partition, damage)
            for segment, unmended in self._still_unmended().items()
            if unmended.was_tried or not self._is_attended_to(segment)
            for damage in _refused(unmended.partition.log, segment)
        ]

    def _is_attended_to(self, segment: Segment) -> bool:
        return self._mending.is_under_way(segment) or segment in self._asking

    def _still_unmended(self) -> dict[Segment, _Unmended]:
        self._unmended = {
            segment: unmended
            for segment, unmended in self._unmended.items()
            if _refused(unmended.partition.log, segment)
        }
        return self._unmended

    def consider_mending(self) -> None:
        """Another replica may have come into sync since damage was found, or have been mended itself."""
        for segment, unmended in self._still_unmended().items():
            if not self._is_attended_to(segment) and self.is_elsewhere(unmended.partition):
                self._ask(segment, self._mend_if_elsewhere(unmended, segment))

    def may_be_had(self, partition: Partition) -> bool:
        """Whether it is worth while to wait for what is damaged here: another broker is in sync, and not
        known to have lost the same."""
        return self.is_elsewhere(partition) and not any(
            unmended.partition is partition and unmended.copies == Copies.REFUSED
            for unmended in self._still_unmended().values()
        )

    def is_elsewhere(self, partition: Partition) -> bool:
        """Whether another broker has what is committed: it leads, or is alive and in the ISR, or eligible."""
        if self._runtime.is_standalone:
            return False
        topic = self._metadata.image.topic_by_id(partition.topic_id)
        if topic is None:
            return False
        index = partition.topic_partition.partition
        others = {topic.leaders[index], *topic.isr(index), *topic.exceptional(index).elr}
        others -= {self._runtime.broker_id, NO_BROKER}
        return any(self._metadata.is_alive(other) for other in others)

    def _repair_index(self, partition: Partition, segment: Segment) -> None:
        """An index that leads astray is made again, in a thread."""
        log = partition.log
        repair = IndexRepair.take(log, segment)
        if repair is None:
            return
        future = self._runtime.loop.run_in_executor(None, repair.run)

        def on_done(done: asyncio.Future[None]) -> None:
            error = done.exception()
            if error is None:
                fresh = repair.done(self._runtime.clock.wall_ms())
                if fresh is not None and segment in self._unmended:
                    # Damage was found meanwhile. Whoever mends the old object ends unheard.
                    self._unmended[fresh] = self._unmended.pop(segment)
            else:
                self._runtime.log.error("index rebuild failed", file=segment.index.path, error=str(error))

        future.add_done_callback(on_done)

"""The offsets and the segments of one log: the segments are rolled, and removed from both ends.

The recovery point is the offset below which everything is known to be on the disk. It moves up only when a
sync has returned, and its checkpoint is lowered before anything below it is cut off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from crc32c import crc32c

from headrace.core.errors import CorruptLog, NotLeader
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.log import producer_snapshot
from headrace.log.claims_file import FirstBatch, first_checksum
from headrace.log.directory import LogDirectory
from headrace.log.doubts import Doubts, first_batch
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_folder import LogFolder
from headrace.log.manifest import Contents, Manifest
from headrace.log.producer_entry import ProducerEntry
from headrace.log.producer_state import ProducerStates
from headrace.log.segment import Segment
from headrace.log.side_files import AtStop
from headrace.log.validation import AppendRules, SealedRules
from headrace.protocol.batch import HEADER_SIZE, read_header

if TYPE_CHECKING:
    from headrace.config.topic import TopicConfig

NOT_DIRTY: Final = -1
UNSYNCED: Final = -1


class Truncation(Protocol):
    """One that is under way, as whoever closes or renames the log sees it: `truncation.TruncationJob`. So is
    a move to another directory, `moving.swap.ReplicaSwap`, though nothing is cut by it."""

    lock: Lock
    failure: CorruptLog | None

    def run(self) -> None: ...
    def done(self) -> None: ...
    def cancel(self) -> None: ...


class SegmentChain:
    """Invariants: log_start_offset <= end_offset and recovery_point <= end_offset; segments ascend, begin at
    or before log_start_offset, and only the last one, the active one, is written to.
    """

    __slots__ = (
        "_active",
        "_bases",
        "_doubts",
        "_flush_offset",
        "_roll_bytes",
        "_roll_waits",
        "_rules",
        "_sealed_for",
        "_unsynced",
        "at_stop",
        "closed",
        "config",
        "directory",
        "dirty_since_ms",
        "durable_start",
        "end_offset",
        "epochs",
        "flush_in_progress",
        "folder",
        "indexes_synced_at",
        "is_open",
        "latest_epoch",
        "log_start_offset",
        "manifest",
        "on_synced",
        "path",
        "producers",
        "recovery_point",
        "segments",
        "synced_offset",
        "topic_id",
        "topic_partition",
        "truncation",
        "truncations",
    )

    def __init__(
        self,
        directory: LogDirectory,
        path: str,
        topic_partition: TopicPartition,
        config: TopicConfig,
        *,
        segments: list[Segment],
        epochs: LeaderEpochs,
        producers: ProducerStates,
        log_start_offset: int,
        end_offset: int,
        recovery_point: int,
        topic_id: UUID = NO_TOPIC_ID,
        snapshot_offsets: Sequence[int] = (),
        manifest: Manifest | None = None,
    ) -> None:
        self.directory = directory
        self.path = path
        self.topic_partition = topic_partition
        self.folder = LogFolder(directory, path, topic_partition, snapshot_offsets)
        self.closed = False
        self.is_open = True
        """Neither closed, nor being truncated or moved: it may be read and written."""
        self.topic_id = topic_id
        self.manifest = manifest or Manifest(directory.disk, path, Contents(topic_partition, topic_id))
        """Of the sealed segments, for the next start."""
        self.segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._active = segments[-1]
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.durable_start = log_start_offset
        """The log start that a restart would find: it follows the other with the next checkpoint."""
        self.end_offset = end_offset
        self.recovery_point = recovery_point
        self.synced_offset = recovery_point
        """Below it every record is on the disk. The recovery point waits for the indexes too."""
        self.on_synced: Callable[[], None] | None = None
        """Told when `synced_offset` has moved."""
        self.latest_epoch = epochs.latest
        self._unsynced: list[Segment] = []
        """Sealed segments that are not yet synced."""
        self.dirty_since_ms = NOT_DIRTY
        self.flush_in_progress = False
        self.indexes_synced_at = UNSYNCED
        """The end offset at which a flush has synced the indexes of the active segment too."""
        self._roll_waits = False
        """The next flush has to."""
        self._flush_offset = recovery_point
        """What the last flush that was begun is to make durable."""
        self.truncations = 0
        """A flush that was taken before a truncation must not move the recovery point past it."""
        self.truncation: Truncation | None = None
        """The one that is under way: until it is done, nobody else touches the log."""
        self.at_stop = AtStop()
        self._sealed_for: str | None = None
        self._doubts = Doubts(segments)
        self.update_config(config)

    def require_open(self) -> None:
        """A log that was deleted or closed must not touch the files that have its name now, and what a thread
        is about to cut off is nobody's to see."""
        self.directory.require_online()
        if self.closed:
            raise NotLeader(f"the log of {self.topic_partition} was closed")
        if not self.is_open:
            raise NotLeader(f"the log of {self.topic_partition} is being truncated, or moved")

    # --- what it is ---

    @property
    def active_segment(self) -> Segment:
        return self._active

    def last_offset_of(self, segment: Segment) -> int:
        """No batch of the segment has a higher one. Checksums do not cover offsets: a bit flipped in that of
        the last batch of a segment shows by this alone."""
        place = bisect_right(self._bases, segment.base_offset)
        return (self._bases[place] if place < len(self._bases) else self.end_offset) - 1

    @property
    def first_batch(self) -> FirstBatch | None:
        """Of the active segment, for the claims; None if nothing is in it, if it was not looked at since it
        was the active one again, or if it may be of another log."""
        return first_batch(self._active) if self._active.is_vouched else None

    @property
    def doubtful(self) -> FirstBatch | None:
        """How the first segment begins that nothing vouches for (rule 13)."""
        return self._doubts.first

    def vouch(self, doubtful: FirstBatch | None = None) -> None:
        """That segment is of this log; None: all are, since nobody knows better."""
        if self._doubts.settle(doubtful) and self.manifest.lacks(self.may_be_listed):
            self.mark_unsynced(0)  # the next flush lists them

    def pass_over_doubts(self, offset: int) -> bool:
        """What lies wholly before this offset is deleted at the leader, and soon here: nobody can compare it.
        False: what is doubted first does not."""
        passed = self._doubts.first_before(offset)
        if passed is not None:
            self.vouch(passed)
        return passed is not None

    @property
    def may_be_listed(self) -> int:
        return self._doubts.listable

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def unflushed_messages(self) -> int:
        return self.end_offset - self.recovery_point

    def active_producers(self) -> Iterator[ProducerEntry]:
        return iter(self.producers)

    def last_stable_offset(self, high_watermark: int) -> int:
        """What a reader of committed transactions may see: up to the oldest one that is open, or whose marker
        is not committed. What was deleted of it no longer counts."""
        unstable = self.producers.first_unstable_offset(high_watermark)
        if unstable is None:
            return high_watermark
        return min(max(unstable, self.log_start_offset), high_watermark)

    def expire_producers(self, now_ms: int, monotonic_ms: int, expiration_ms: int) -> int:
        return self.producers.expire(now_ms, monotonic_ms, expiration_ms)

    def update_config(self, config: TopicConfig) -> None:
        self.config: TopicConfig = config
        self._rules = self._rules_of(config)
        self._roll_bytes: int = config.segment_bytes
        self._active.index_interval = config.index_interval_bytes
        self._active.limit_indexes(config.segment_index_bytes)
        self._active.reset_clock(self._segment_ms())

    # --- who may write ---

    @property
    def is_sealed(self) -> bool:
        """Whether clients are refused."""
        return self._sealed_for is not None

    def seal(self, reason: str | None) -> None:
        """Refuse what clients send, and tell them why. None: take it again."""
        self._sealed_for = reason
        self._rules = self._rules_of(self.config)

    def _rules_of(self, config: TopicConfig) -> AppendRules:
        reason = self._sealed_for
        return AppendRules(config) if reason is None else SealedRules(config, reason)

    # --- rolling ---

    def roll(self, now_ms: int) -> None:
        """Seal the active segment and begin a new one; an empty one is left as it is."""
        if self._active.size:
            self._roll(now_ms)

    def may_roll(self, last_offset: int) -> bool:
        """Whether the active segment, which is full, can be sealed without waiting for the disk.

        One that is synced to its end has to have its indexes synced first: recovery will not walk over it
        again. The next flush does that; until then it grows beyond its limits by a batch or two. Only
        `last_offset` has to be one that it can hold.
        """
        active = self._active
        if not active.size:
            return False
        if self.recovery_point != self.end_offset or self.indexes_synced_at == self.end_offset:
            return True
        if last_offset > active.highest_offset:
            return True
        self._roll_waits = True
        return False

    def _roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """The new segment begins at the end offset: so a hole after a crash can be told from a real gap.

        If the disk is full in between, the old one stays the active one, and the next append rolls again.
        """
        sealed = self._active
        try:
            sealed.seal()
            if self.recovery_point == self.end_offset and self.indexes_synced_at != self.end_offset:
                sealed.sync_indexes()  # recovery will not walk over it again, so they must be right
            self.take_snapshot()
            added = self.add_segment(self.end_offset if base_offset is None else base_offset, now_ms)
        except OSError as error:
            raise self.directory.refuse(error, f"roll {self.topic_partition}") from error
        if self.recovery_point != self.end_offset:
            self._unsynced.append(sealed)
        self.mark_unsynced(now_ms)
        return added

    def add_segment(self, base_offset: int, now_ms: int) -> Segment:
        segment = Segment(
            self.directory,
            self.path,
            base_offset,
            created_ms=now_ms,
            index_interval=self.config.index_interval_bytes,
            max_index_bytes=self.config.segment_index_bytes,
        )
        segment.create_file()
        self.folder.note_folder_changed()
        self.segments.append(segment)
        self._bases.append(base_offset)
        self._active = segment
        return segment

    def _start_segment_clock(self, segment: Segment, max_timestamp: int, now_ms: int) -> None:
        segment.start_clock(max_timestamp, now_ms, self._segment_ms())

    def _segment_ms(self) -> int:
        """segment.ms, less up to segment.jitter.ms: partitions that began together do not roll together.

        Only sealed segments are compacted, so max.compaction.lag.ms is a limit too.
        """
        segment_ms, jitter = self.config.segment_ms, self.config.segment_jitter_ms
        if "compact" in self.config.cleanup_policy:
            segment_ms = min(segment_ms, self.config.max_compaction_lag_ms)
        if not jitter:
            return segment_ms
        return segment_ms - min(crc32c(str(self.topic_partition).encode()) % jitter, segment_ms)

    def resume_clock(self, now_ms: int) -> None:
        """After a restart, the first batch of the active segment says when it began."""
        active = self._active
        if active.size:
            head = active.file().pread(HEADER_SIZE, 0)
            active.first_checksum = first_checksum(head)
            self._start_segment_clock(active, read_header(head).max_timestamp, now_ms)

    # --- what the disk has to get ---

    def take_snapshot(self) -> None:
        """Write the producers as of the end offset, so that a restart need not read what lies before."""
        offset = self.end_offset
        taken = self.folder.snapshot_offsets
        if not taken or taken[-1] < offset:
            self.folder.write_snapshot(offset, producer_snapshot.encode(self.producers.snapshot()))

    def mark_unsynced(self, now_ms: int) -> None:
        if self.dirty_since_ms < 0:
            self.dirty_since_ms = now_ms
            self.directory.dirty[self] = None

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether the topic's flush settings, or a segment that was sealed, ask for a flush now."""
        if self.dirty_since_ms < 0 or self.flush_in_progress or not self.is_open:
            return False
        return (
            bool(self._unsynced)
            or self.manifest.lacks(self.may_be_listed)
            or self._roll_waits
            or self.end_offset - self.recovery_point >= self.config.flush_messages
            or now_ms - self.dirty_since_ms >= self.config.flush_ms
        )

    # --- removing ---

    def raise_log_start(self, offset: int) -> None:
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.latest_epoch = self.epochs.latest

    def drop_leading(self, count: int, now_ms: int) -> None:
        """Remove the first `count` segments: renamed now, deleted after file.delete.delay.ms."""
        gone = self.segments[:count]
        del self.segments[:count]
        del self._bases[:count]
        when = now_ms + self.config.file_delete_delay_ms
        for segment in gone:
            self.folder.expire_segment(segment, when)
        self._unsynced = [segment for segment in self._unsynced if segment not in gone]
        self.folder.note_folder_changed()
        self.mark_unsynced(now_ms)

    def drop_last(self) -> list[str]:
        """The last segment goes, the one before it becomes the active one. Its files, to be removed by the
        caller."""
        segment = self.segments.pop()
        self._bases.pop()
        renamed = self.folder.rename_away(segment)
        if segment in self._unsynced:
            self._unsynced.remove(segment)
        if self.segments:
            self._active = self.segments[-1]
            if self._active in self._unsynced:
                self._unsynced.remove(self._active)
        return renamed

    def replace_segments(self, place: int, count: int, segment: Segment) -> None:
        """Compaction made one sealed segment of several."""
        gone = self.segments[place : place + count]
        self.segments[place : place + count] = [segment]
        self._bases[place : place + count] = [segment.base_offset]
        self._unsynced = [sealed for sealed in self._unsynced if sealed not in gone]

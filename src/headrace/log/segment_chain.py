"""The segments of one log and what keeps them right: roll, flush, snapshot, delete, close.

The recovery point is the offset below which everything is known to be on the disk. It moves up only when a
sync has returned, and its checkpoint is lowered before anything below it is cut off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from crc32c import crc32c

from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.log import files, producer_snapshot
from headrace.log.claims_file import FirstBatch, first_checksum
from headrace.log.directory import LogDirectory
from headrace.log.flush import FlushJob
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_folder import LogFolder
from headrace.log.manifest import Contents, Listing, Manifest
from headrace.log.producer_entry import ProducerEntry
from headrace.log.producer_state import ProducerStates
from headrace.log.segment import Segment
from headrace.log.side_files import SideFiles
from headrace.log.validation import AppendRules
from headrace.protocol.batch import HEADER_SIZE, read_header

if TYPE_CHECKING:
    from headrace.config.topic import TopicConfig
    from headrace.log.truncation import TruncationJob

NOT_DIRTY: Final = -1
UNSYNCED: Final = -1


class SegmentChain(LogFolder):
    """Invariants: log_start_offset <= end_offset and recovery_point <= end_offset; segments ascend, begin at
    or before log_start_offset, and only the last one, the active one, is written to.
    """

    __slots__ = (
        "_active",
        "_bases",
        "_flush_offset",
        "_roll_bytes",
        "_roll_waits",
        "_rules",
        "_unsynced",
        "closed_at",
        "config",
        "dirty_since_ms",
        "durable_start",
        "end_offset",
        "epochs",
        "flush_in_progress",
        "indexes_synced_at",
        "latest_epoch",
        "log_start_offset",
        "manifest",
        "on_synced",
        "producers",
        "recovery_point",
        "segments",
        "side",
        "synced_offset",
        "topic_id",
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
        super().__init__(directory, path, topic_partition, snapshot_offsets)
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
        """Below it every record is on the disk, though perhaps not yet every index, which the recovery point
        waits for."""
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
        self.truncation: TruncationJob | None = None
        """The one that is under way: until it is done, nobody else touches the log."""
        self.closed_at = -1
        """The end offset at which an earlier clean stop left these files; -1 if none did."""
        self.side = SideFiles()
        """Beside the active segment at a clean stop: at `closed_at`, or when it is closed."""
        self.update_config(config)

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
        """Of the active segment; None if nothing is in it, or was not looked at since it was the active one
        again."""
        active = self._active
        checksum = active.first_checksum
        return None if checksum is None or not active.size else FirstBatch(active.base_offset, checksum)

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
        self._rules = AppendRules(config)
        self._roll_bytes: int = config.segment_bytes
        self._active.index_interval = config.index_interval_bytes
        self._active.limit_indexes(config.segment_index_bytes)
        self._active.reset_clock(self._segment_ms())

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
        self.note_folder_changed()
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

    # --- producer snapshots ---

    def take_snapshot(self) -> None:
        """Write the producers as of the end offset, so that a restart need not read what lies before."""
        offset = self.end_offset
        if self.snapshot_offsets and self.snapshot_offsets[-1] >= offset:
            return
        path = self.snapshot_path(offset)
        content = producer_snapshot.encode(self.producers.snapshot())
        files.replace(self.directory.disk, path, content, sync=False)
        self.snapshot_offsets.append(offset)
        self.note_unsynced(path)

    # --- flushing ---

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
            or self.manifest.lacks(len(self.segments) - 1)
            or self._roll_waits
            or self.end_offset - self.recovery_point >= self.config.flush_messages
            or now_ms - self.dirty_since_ms >= self.config.flush_ms
        )

    def take_flush(self) -> FlushJob | None:
        """What has to be synced so that everything up to now is durable. One at a time."""
        if self.flush_in_progress or not self.is_open:
            return None
        self.directory.require_online()
        try:
            return self._take_flush()
        except OSError as error:
            raise self.directory.fail(error, f"flush {self.topic_partition}") from error

    def _take_flush(self) -> FlushJob:
        sealed = self._unsynced
        segments = [*sealed, self._active]
        paths = self._unsynced_paths or []
        directories = []
        if self._unsynced_paths is not None:
            directories = [self.path, self.directory.path]
        # What may find no descriptor comes first: until then nothing has changed.
        open_files = [segment.file() for segment in segments]
        listing = self._take_listing()
        if self._roll_waits:
            self._active.flush_indexes(final=True)
        for segment in sealed:
            paths += segment.index_paths()
        if self.epochs.unsynced:
            paths.append(self.epochs.path)
            directories = directories or [self.path]
            self.epochs.unsynced = False
        if self._roll_waits:
            paths += self._active.index_paths()
            directories = directories or [self.path]
        self._unsynced = []
        self._unsynced_paths = None
        self.dirty_since_ms = NOT_DIRTY
        self.directory.dirty.pop(self, None)
        self.flush_in_progress = True
        self._flush_offset = self.end_offset
        with_indexes, self._roll_waits = self._roll_waits, False
        return FlushJob(self, self.directory.disk, open_files, paths, directories, with_indexes, listing)

    def _take_listing(self) -> Listing | None:
        """The sealed segments that the manifest does not list yet. The flush that syncs them lists them, also
        those before the log start: left out, they would look like files of another log between the others."""
        if not self.manifest.lacks(len(self.segments) - 1):
            return None
        listed = {each.base_offset for each in self.manifest.contents.sealed}
        wanted = [
            (segment.base_offset, self._bases[place + 1], segment.size, segment.file())
            for place, segment in enumerate(self.segments[:-1])
            if segment.base_offset not in listed
        ]
        return Listing(self.manifest, wanted) if wanted else None

    def flushed(self, job: FlushJob) -> None:
        """The job's sync has returned."""
        self.flush_in_progress = False
        if job.truncations != self.truncations:
            return
        offset = job.offset
        if job.with_indexes:
            self.indexes_synced_at = offset
        if self._unsynced and offset > self._unsynced[0].base_offset:
            offset -= 1  # sealed meanwhile, its indexes not synced: recovery must still walk over it
        self.recovery_point = max(self.recovery_point, offset)
        self.synced_offset = max(self.synced_offset, job.offset)
        if self.on_synced is not None:
            self.on_synced()

    def awaits_sync(self, segment: Segment) -> bool:
        """Whether a flush that is to come, or is under way, has to sync it."""
        return self.flush_in_progress or segment in self._unsynced

    def flush(self) -> None:
        """Make everything durable before it returns."""
        job = self.take_flush()
        if job is not None:
            job.run()
            job.done()

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
            self.expire_segment(segment, when)
        self._unsynced = [segment for segment in self._unsynced if segment not in gone]
        self.note_folder_changed()
        self.mark_unsynced(now_ms)

    def drop_last(self) -> list[str]:
        """The last segment goes, the one before it becomes the active one. Its files, under names that mean
        nothing: to be removed by the caller, which takes long where they are large."""
        segment = self.segments.pop()
        self._bases.pop()
        renamed = []
        for suffix in files.SEGMENT_SUFFIXES:
            path = segment.path(suffix)
            try:
                self.directory.disk.rename(path, path + files.DELETED)
            except FileNotFoundError:
                continue
            renamed.append(path + files.DELETED)
        segment.release()
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

    # --- the end ---

    def close(self) -> None:
        """Stop cleanly: indexes, producers and epochs are on the disk and the recovery point is the end."""
        if self.closed:
            return
        if (
            self.closed_at == self.end_offset
            and self.dirty_since_ms < 0
            and not self.truncations
            and not self.epochs.unsynced
        ):
            if not self.side.is_known:
                self._note_side_files()
            self.abandon()  # nothing has changed since a clean stop: the files are as they should be
            return
        if self.end_offset == self.log_start_offset == 0 and self.dirty_since_ms < 0 and not self.truncations:
            self.abandon()  # nothing was ever written to it, so nothing has to be found again
            return
        try:
            self._active.flush_indexes(final=True)
            self.take_snapshot()
            self._unsynced.append(self._active)
            self.flush_in_progress = False
        except OSError as error:
            raise self.directory.fail(error, f"close {self.topic_partition}", half_done=True) from error
        self.flush()
        self._note_side_files()
        self.abandon()

    def _note_side_files(self) -> None:
        self.side = self.manifest.beside(self._active.base_offset, self.end_offset)

    def abandon(self) -> None:
        """Let go of every descriptor and do nothing more: the directory is offline, or the log is deleted."""
        self.closed = True
        self.manifest.close()
        self.is_open = False
        self.directory.dirty.pop(self, None)
        self.directory.raised.pop(self, None)
        for segment in self.segments:
            segment.release()

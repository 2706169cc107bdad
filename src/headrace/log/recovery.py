"""Opening a log: what is on the disk becomes a PartitionLog, after a clean stop or after a crash.

After a clean stop the files are trusted, and only the tail behind the last index entry is walked. After any
other stop every segment from the recovery point on is walked batch by batch with its checksum; the log ends
before the first byte that cannot be right, and the indexes of those segments are built anew. Indexes,
checkpoints, epochs and snapshots that are missing or broken are rebuilt from the batches.

A fault below the recovery point is another matter: those bytes were synced, so the disk has lost or changed
what it had promised. That is CorruptLog, and the files stay as they are, unless `accept_loss` is given.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from headrace.core.errors import CorruptLog
from headrace.core.ids import TopicPartition
from headrace.log import (
    epoch_recovery,
    files,
    index_verification,
    leftovers,
    producer_replay,
    scan,
    sealed_segments,
    transaction_recovery,
    wholeness,
)
from headrace.log.directory import LogDirectory
from headrace.log.index_file import WrongIndex
from headrace.log.index_loading import load_indexes
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_state import ProducerStates
from headrace.log.proof import Proof
from headrace.log.recovery_walk import RecoveryWalks
from headrace.log.segment import Segment
from headrace.log.wholeness import Claims, FileFault

if TYPE_CHECKING:
    from headrace.config.topic import TopicConfig

_OF_ONE_FILE: Final = (
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ELOOP,
    errno.ENOENT,
    errno.ESPIPE,
    errno.ENXIO,
    errno.EINVAL,
)
"""Something else lies in the place of a file: a folder, a pipe, a link to nowhere. The disk is well."""


def open_log(
    directory: LogDirectory,
    path: str,
    partition: TopicPartition,
    config: TopicConfig,
    claims: Claims,
    *,
    clean: bool,
    now_ms: int,
    accept_loss: bool = False,
    foreign: bool = False,
    on_rebuilt: Callable[[str], None] | None = None,
) -> PartitionLog:
    """Raises CorruptLog, with the files untouched, if something that was synced is not there.

    `on_rebuilt` hears of each file beside the batches that was not what was written, and is made anew.

    `foreign` is for a log that another program wrote, stopped as it may be: it is walked from its beginning,
    gaps between offsets are as they are, and only a torn tail of its last segment is cut off.
    """
    try:
        loader = _Loader(directory, path, partition, config, claims, now_ms, accept_loss, foreign)
        if not (clean and loader.load_clean()):
            loader.recover()
        log = loader.finish()
    except OSError as error:
        if error.errno in _OF_ONE_FILE:
            raise wholeness.changed(
                FileFault(error.filename or path, error.strerror or str(error))
            ) from error
        raise directory.fail(error, f"open {partition}", half_done=True) from error
    if on_rebuilt is not None:
        for file in loader.rebuilt:
            on_rebuilt(file)
    return log


class _Loader:
    """The state of one opening. Each step leaves `segments` a chain of whole batches up to `end_offset`."""

    def __init__(
        self,
        directory: LogDirectory,
        path: str,
        partition: TopicPartition,
        config: TopicConfig,
        claims: Claims,
        now_ms: int,
        accept_loss: bool,
        foreign: bool,
    ) -> None:
        self.directory = directory
        self.disk = directory.disk
        self.path = path
        self.partition = partition
        self.config = config
        self.now_ms = now_ms
        self.accept_loss = accept_loss
        self.foreign = foreign
        self.epochs = LeaderEpochs(self.disk, f"{path}/{files.EPOCHS}")
        self.has_epochs = self.epochs.load()
        self.producers = ProducerStates(directory.admits_producer)
        rules = wholeness.ALL_OFF if accept_loss or foreign else directory.wholeness
        self.proof = Proof(self.disk, path, partition, claims, rules)
        if self.proof.was_emptied:
            self.epochs.entries = []
        names = self.disk.list(path)
        if leftovers.has_swap(names):  # only when that is done it is known which segments there are
            names = leftovers.tidy(self.disk, path)
            self.proof.require_files(names, self.epochs.entries if self.has_epochs else None)
        else:  # before anything is changed
            self.proof.require_files(names, self.epochs.entries if self.has_epochs else None)
            names = leftovers.tidy(self.disk, path)
        self.recovery_point = self.proof.recovery_point
        self.log_start_offset = self.proof.log_start_offset
        self.snapshots = leftovers.offsets_of(names, files.SNAPSHOT)
        bases = leftovers.offsets_of(names, files.LOG)
        is_partial = accept_loss or foreign
        self.deleted = [] if is_partial else sealed_segments.deleted(bases, self.log_start_offset)
        """Base offsets of segments whose files go now: whatever became of them is nobody's loss."""
        bases = bases[len(self.deleted) :]
        self.aborting = [
            base for base in leftovers.offsets_of(names, files.TXN_INDEX) if base not in self.deleted
        ]
        """Base offsets of the segments with an index of aborted transactions."""
        self.jumps = leftovers.noted_jumps(self.disk, path, names, self.recovery_point)
        self.segments = [self._segment(base) for base in bases]
        self.walks = RecoveryWalks(
            self.segments, self.epochs, self.jumps, recovery_point=self.recovery_point, foreign=foreign
        )
        self.end_offset = self.log_start_offset
        self.trusted = False
        self.was_clean = False
        """The last stop was: then every index is as it was written."""
        self.made_anew: set[int] = set()
        """Base offsets of the segments whose index of aborted transactions was."""
        self.rebuilt: list[str] = []
        """The paths of those, of indexes, and of snapshots that were not believed."""
        self.was_empty = not any(segment.size for segment in self.segments) and not self.epochs.entries
        """Nothing was ever kept of it, so nothing of it has to be made durable: there may be thousands."""

    def _segment(self, base_offset: int) -> Segment:
        segment = Segment(
            self.directory,
            self.path,
            base_offset,
            created_ms=self.now_ms,
            index_interval=self.config.index_interval_bytes,
            max_index_bytes=self.config.segment_index_bytes,
        )
        segment.size = self.disk.size(segment.path(files.LOG))
        return segment

    # --- after a clean stop ---

    def load_clean(self) -> bool:
        """Take the files as they are. False when the files are not what a clean stop leaves behind."""
        self.was_clean = True
        for segment in self.segments:
            if not load_indexes(segment, self.disk):
                return False
        if not self.segments:
            self.proof.require_nothing_promised(self.epochs.entries)
            self.trusted = True
            return True
        self.proof.require_sealed(self.segments, len(self.segments) - 1)
        active = self.segments[-1]
        try:
            self.end_offset = active.load_tail()
        except (CorruptLog, WrongIndex):
            return False
        found = active.locate(self.end_offset - 1) if active.size else None
        if active.size and (found is None or found.position + found.size != active.size):
            return False
        if not self.proof.require_end(self.end_offset):
            return False
        self._load_side_files(self.segments, self.end_offset, is_all=True)
        if self.end_offset > self.log_start_offset or not self.end_offset:
            self.epochs.forget_from(self.end_offset)  # no batch confirms it, and the file has no checksum
        self.trusted = True
        return True

    # --- after a crash ---

    def recover(self) -> None:
        if self.proof.lost_beginning:
            self._drop_after(0)
        first = self._first_to_walk()
        for segment in self.segments[:first]:
            if not load_indexes(segment, self.disk):
                self.rebuilt += segment.rebuild_indexes()
                segment.index.sync()
                segment.times.sync()
        self.proof.require_sealed(self.segments, first)
        if not self.segments:
            self.proof.require_nothing_promised(self.epochs.entries)
            return
        begin = self.segments[first].base_offset
        if not self.accept_loss:
            self.walks.require_promised(self.segments[first])
        self._load_side_files(self.segments[:first], begin, is_all=False)
        self.end_offset = begin
        for place in range(first, len(self.segments)):
            segment = self.segments[place]
            whole = segment.base_offset == self.end_offset or place == first or self.foreign
            if self.foreign and segment is not self.segments[-1]:
                self.walks.require_intact(segment)
            if not whole:
                self.proof.require_loss_of_power(self.end_offset, segment.base_offset)
            if not whole or not self._walk(segment):
                self._drop_after(place if not whole else place + 1)
                break
        self.proof.require_end(self.end_offset)
        self.snapshots = [at for at in self.snapshots if self._keep_snapshot(at)]
        if self.has_epochs:
            self.epochs.truncate_from_end(self.end_offset)
            self.epochs.write()

    def _first_to_walk(self) -> int:
        """The segment that holds the recovery point; all of them, once a loss was accepted."""
        place = 0
        if self.accept_loss:
            return place
        for index, segment in enumerate(self.segments):
            if segment.base_offset <= self.recovery_point:
                place = index
        return place

    def _walk(self, segment: Segment) -> bool:
        """Check every batch of a segment and rebuild what is derived from it. False: it was cut short."""
        size, file = segment.size, segment.file()
        if self.was_clean and size:  # an empty segment has no indexes
            self.rebuilt += self._wrong_indexes(segment)
        segment.reset_indexes()
        segment.transactions.reset()
        walks = self.walks
        walk = walks.begin(segment, size)
        for _, header, batch in walk:
            segment.note(header.size, header.base_offset, header.last_offset, header.max_timestamp)
            self.epochs.note(header.leader_epoch, header.base_offset)
            walks.last_epoch = header.leader_epoch
            producer_replay.take_over(self.producers, segment, header, lambda found=batch: found)  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
        self.end_offset = walk.next_offset
        segment.flush_indexes(final=True)
        if walk.fault is not None:
            self.proof.require_torn(segment, walk.fault, self.end_offset, segment is self.segments[-1])
            file.truncate(walk.position)
        if not self.was_empty:
            file.sync()
            segment.index.sync()
            segment.times.sync()
            files.sync_path(self.disk, segment.transactions.path)
        return walk.fault is None

    def _wrong_indexes(self, segment: Segment) -> list[str]:
        found = scan.headers(segment.file(), 0, segment.size)
        try:
            return index_verification.wrong_indexes(self.disk, segment, found)
        except CorruptLog:
            return []  # the batches are, which has been told

    def _drop_after(self, place: int) -> None:
        """Segments behind the end that was found hold nothing that follows it."""
        for segment in self.segments[place:]:
            for suffix in files.SEGMENT_SUFFIXES:
                leftovers.remove(self.disk, segment.path(suffix))
            segment.release()
        del self.segments[place:]
        self.disk.sync_dir(self.path)

    def _keep_snapshot(self, offset: int) -> bool:
        if offset <= self.end_offset:
            return True
        leftovers.remove(self.disk, f"{self.path}/{files.numbered(offset)}{files.SNAPSHOT}")
        return False

    # --- both ---

    def _load_side_files(self, segments: Sequence[Segment], until: int, *, is_all: bool) -> None:
        """The producers as of `until`, and the indexes of aborted transactions before that."""
        expected = self.proof.side_files(segments, until, is_all=is_all)
        if self.aborting or any(expected.may_lack_index(segment.base_offset) for segment in segments):
            self.made_anew = transaction_recovery.repair(
                self.disk, segments, self.path, self.snapshots, self.aborting, expected, self.rebuilt
            )
        self.rebuilt += producer_replay.rebuild(
            self.disk, self.producers, segments, self.path, self.snapshots, until, expected
        )

    def finish(self) -> PartitionLog:
        start = self.log_start_offset
        if self.segments:
            start = max(start, self.segments[0].base_offset)
            if start > self.end_offset:  # the records before the log start were lost with the crash
                self._drop_after(0)
        if not self.segments:
            self._begin_empty(start)
        if not self.has_epochs or not epoch_recovery.agree(
            self.epochs, self.segments, start, self.end_offset
        ):
            epoch_recovery.rebuild(self.epochs, self.segments)
        self.rebuilt += self.proof.mend_topic_id()
        if not (self.foreign or self.accept_loss):  # a person vouches for those
            self.proof.doubt(self.segments, self.trusted)
        log = PartitionLog(
            self.directory,
            self.path,
            self.partition,
            self.config,
            segments=self.segments,
            epochs=self.epochs,
            producers=self.producers,
            log_start_offset=start,
            end_offset=self.end_offset,
            recovery_point=self.end_offset,
            topic_id=self.proof.topic_id,
            snapshot_offsets=self.snapshots,
            manifest=self.proof.save_manifest(self.segments, start, self.made_anew),
        )
        is_whole = self.trusted and bool(self.snapshots) and self.snapshots[-1] == self.end_offset
        has_side = is_whole and self.segments[-1].base_offset not in self.made_anew
        log.resume(jumps=self.jumps, is_whole=is_whole, side=self.proof.beside_last if has_side else None)
        log.resume_clock(self.now_ms)
        if not self.trusted and self.was_empty:
            log.folder.note_unsynced(
                f"{self.path}/{files.PARTITION_METADATA}"
            )  # with its first flush, as a new one
        elif not self.trusted:
            files.sync_path(self.disk, self.epochs.path)
            self.epochs.unsynced = False
            self.disk.sync_dir(self.path)
        for segment in self.segments:
            segment.release()
        self._remove_deleted()
        return log

    def _remove_deleted(self) -> None:
        """Not before: their files are left as they are where the rest is not whole. The log start is on the
        disk, so the next start finds the same if this one is interrupted."""
        for base in self.deleted:
            for suffix in files.SEGMENT_SUFFIXES:
                leftovers.remove(self.disk, f"{self.path}/{files.numbered(base)}{suffix}")

    def _begin_empty(self, start: int) -> None:
        segment = self._segment_file(start)
        self.segments = [segment]
        self.end_offset = start
        self.producers.clear(start)
        self.epochs.entries = []
        self.has_epochs = True
        for offset in self.snapshots:
            leftovers.remove(self.disk, f"{self.path}/{files.numbered(offset)}{files.SNAPSHOT}")
        self.snapshots = []
        self.disk.sync_dir(self.path)

    def _segment_file(self, base_offset: int) -> Segment:
        file = self.disk.open(f"{self.path}/{files.numbered(base_offset)}{files.LOG}", create=True)
        file.close()
        return self._segment(base_offset)

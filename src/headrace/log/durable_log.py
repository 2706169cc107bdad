"""The durable part of a log: flushes, truncations, a clean stop.

The recovery point is the offset below which everything is known to be on the disk. It moves up only when a
sync has returned, and its checkpoint is lowered before anything below it is cut off. The jobs that work in
threads (`flush.py`, `truncation.py`, `retention.py`) decide and sync. Only this module and the
segment chain move the offsets.
"""

from __future__ import annotations

from headrace.log.flush import FlushJob
from headrace.log.manifest import Listing
from headrace.log.producer_state import ProducerStates
from headrace.log.segment import Segment
from headrace.log.segment_chain import NOT_DIRTY, UNSYNCED, SegmentChain, Truncation
from headrace.log.side_files import AtStop, SideFiles


class DurableLog(SegmentChain):
    __slots__ = ()

    # --- flushing ---

    def take_flush(self) -> FlushJob | None:
        """Return the job that makes all of it durable; None if one runs, or the log is not open."""
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
        directories = [self.path, self.directory.path] if self.folder.has_changed else []
        # Open files first: if there is no descriptor left, nothing has changed yet.
        open_files = [segment.file() for segment in segments]
        listing = self._take_listing()
        if self._roll_waits:
            self._active.flush_indexes(final=True)
        paths = self.folder.take_unsynced()
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
        self.dirty_since_ms = NOT_DIRTY
        self.directory.dirty.pop(self, None)
        self.flush_in_progress = True
        self._flush_offset = self.end_offset
        with_indexes, self._roll_waits = self._roll_waits, False
        return FlushJob(self, self.directory.disk, open_files, paths, directories, with_indexes, listing)

    def _take_listing(self) -> Listing | None:
        """The sealed segments that the manifest does not list yet. The flush that syncs them lists them, also
        those before the log start. Otherwise recovery would take them for files of another log."""
        count = self.may_be_listed
        if not self.manifest.lacks(count):
            return None
        listed = {each.base_offset for each in self.manifest.contents.sealed}
        wanted = [
            (segment.base_offset, self._bases[place + 1], segment.size, segment.file())
            for place, segment in enumerate(self.segments[:count])
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
            offset -= 1  # a segment was sealed meanwhile: recovery must still scan it, for its indexes
        self.recovery_point = max(self.recovery_point, offset)
        self.synced_offset = max(self.synced_offset, job.offset)
        if self.on_synced is not None:
            self.on_synced()

    def awaits_sync(self, segment: Segment) -> bool:
        """Whether a flush that is to come, or is under way, has to sync it."""
        return self.flush_in_progress or segment in self._unsynced

    def flush(self) -> None:
        """Make everything durable, then return."""
        job = self.take_flush()
        if job is not None:
            job.run()
            job.done()

    def flush_failed(self) -> None:
        """The job's sync has raised: the directory is offline already."""
        self.flush_in_progress = False

    # --- the log start ---

    def note_durable_start(self, offset: int) -> None:
        """A restart would find the log start at `offset`."""
        self.durable_start = max(self.durable_start, offset)

    # --- truncations, in the order of their steps ---

    def close_for(self, truncation: Truncation) -> None:
        """Until it is done, nobody else touches the log."""
        self.truncations += 1
        self.truncation = truncation
        self.is_open = False

    def promise_at_most(self, recovery_point: int, log_start_offset: int) -> None:
        """Lower both before a truncation, so that a checkpoint written meanwhile is still true after the
        truncation."""
        self.recovery_point = min(self.recovery_point, recovery_point)
        self.log_start_offset = min(self.log_start_offset, log_start_offset)

    def end_at(self, offset: int) -> None:
        """Everything from `offset` on has been truncated."""
        self.end_offset = offset
        self.indexes_synced_at = UNSYNCED
        self.recovery_point = min(self.recovery_point, offset)
        self.synced_offset = min(self.synced_offset, offset)
        self.epochs.truncate_from_end(offset)
        self.latest_epoch = self.epochs.latest

    def empty_at(self, offset: int) -> None:
        """Nothing of what was there is left, and the log goes on at `offset`."""
        self.epochs.clear()
        self.latest_epoch = self.epochs.latest
        self.producers = ProducerStates(self.directory.admits_producer)
        self.producers.clear(offset)
        self.end_offset = offset

    def begin_at(self, offset: int) -> None:
        """The disk knows that the log was emptied: nothing of what was there can come back."""
        self.log_start_offset = self.durable_start = offset
        self.recovery_point = self.synced_offset = offset

    def replace_producers(self, producers: ProducerStates) -> None:
        """Take a new object. Whoever counts the old producers meanwhile finds them unchanged."""
        self.producers = producers

    # --- a move to another directory ---

    def close_for_move(self, swap: Truncation) -> None:
        """Until it is done, nobody writes. Nothing is cut: what others have begun with these files counts
        until `move_to`."""
        self.truncation = swap
        self.is_open = False

    def move_to(self, moved: DurableLog) -> None:
        """Go on with the files of `moved`, which hold the same, synced to the end. Jobs that were begun with
        the old files are void from here on."""
        self.directory.dirty.pop(self, None)
        self.directory.raised.pop(self, None)
        self.manifest.close()
        for segment in self.segments:
            segment.release()
        self.directory, self.path, self.folder = moved.directory, moved.path, moved.folder
        self.manifest, self.epochs = moved.manifest, moved.epochs
        self.segments, self._bases, self._active = moved.segments, moved._bases, moved._active
        self._doubts = moved._doubts
        self._unsynced = []
        self.dirty_since_ms = NOT_DIRTY
        self.indexes_synced_at = moved.indexes_synced_at
        self._roll_waits = False
        self.truncations += 1
        self.at_stop = AtStop()
        self.recovery_point = self.synced_offset = self._flush_offset = moved.end_offset

    def open_again(self) -> None:
        """The truncation, or the move, is over; the log may have been closed meanwhile."""
        self.truncation = None
        self.is_open = not self.closed

    # --- a start ---

    def resume(self, *, jumps: tuple[tuple[int, int], ...], is_whole: bool, side: SideFiles | None) -> None:
        """After a restart. `is_whole`: an earlier clean stop left these files. `side`: the checksums of the
        files beside the last segment, if they are still as that stop left them."""
        self.folder.jumps = jumps
        self.folder.drop_jumps([jump for jump in jumps if jump[1] > self.end_offset])
        if is_whole:
            self.indexes_synced_at = self.end_offset
            self.at_stop = self.at_stop._replace(end_offset=self.end_offset)
        if side is not None:
            self.at_stop = self.at_stop._replace(side=side)

    # --- the end ---

    def close(self) -> None:
        """Stop cleanly: indexes, producers and epochs are on the disk and the recovery point is the end."""
        if self.closed:
            return
        if (
            self.at_stop.end_offset == self.end_offset
            and self.dirty_since_ms < 0
            and not self.truncations
            and not self.epochs.unsynced
        ):
            if not self.at_stop.side.is_known:
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
        side = self.manifest.beside(self._active.base_offset, self.end_offset)
        self.at_stop = self.at_stop._replace(side=side)

    def abandon(self) -> None:
        """Let go of every descriptor and do nothing more: the directory is offline, or the log is deleted."""
        self.closed = True
        self.manifest.close()
        self.is_open = False
        self.directory.dirty.pop(self, None)
        self.directory.raised.pop(self, None)
        for segment in self.segments:
            segment.release()

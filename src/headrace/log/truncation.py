"""Cutting the end off a log, in steps, so that the event loop never waits for the disk.

`DurableLog.take_truncation` closes the log for everybody else, on the loop. In a thread `lower_together`
lowers the recovery points on the disk, those of many logs with one write, then `run` cuts one log and syncs
it. `done`, on the loop again, opens the log. In between nothing is appended to it, read from it or synced.

What was cut must not come back after a power loss behind newer records, so the file is synced after it was
shortened, removed segments are gone from the synced folder, and the recovery point is lowered on the disk
first: it never promises what is no longer there.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

from headrace.core.errors import CorruptLog
from headrace.core.ids import TopicPartition
from headrace.log import files, producer_replay, scan
from headrace.log.directory import LogDirectory, Lowered
from headrace.log.producer_state import ProducerStates
from headrace.log.segment import NEVER
from headrace.log.segment_times import largest_timestamp

if TYPE_CHECKING:
    from headrace.log.durable_log import DurableLog


class TruncationJob:
    """One truncation of one log. `run` may be called from any thread, once `lower_together` has returned;
    `done` and `cancel` belong to the loop."""

    __slots__ = ("_boundary", "_fully", "_offset", "failure", "lock", "log")

    def __init__(self, log: DurableLog, offset: int, *, fully: bool) -> None:
        self.log = log
        self._offset = offset
        self._fully = fully
        """Nothing stays, and the log goes on at `offset`."""
        self._boundary = offset
        self.failure: CorruptLog | None = None
        """Why it could not be found where to cut. Nothing was cut then."""
        self.lock = Lock()
        """Held while names in the folder change, never while a disk is synced. Whoever gives the folder
        another name holds it too, with the log closed: another log may have that name next."""

    @property
    def offset(self) -> int:
        """From which on nothing is to stay."""
        return self._offset

    # --- in a thread ---

    def find_end(self) -> Lowered:
        """Decide where the log will end, and what the disk may promise of it before anything is cut. From
        here on the log itself says no more than that."""
        log = self.log
        if not self._fully:
            if self._offset > log.log_start_offset:
                self._boundary = _batch_boundary(log, self._offset)
            if self._offset <= log.log_start_offset or self._boundary < log.log_start_offset:
                self._fully = True
                self._boundary = min(self._offset, log.log_start_offset)
        if self._fully:
            log.promise_at_most(0, self._boundary)
            return 0, self._boundary, self._boundary
        self._note_end()
        log.promise_at_most(self._boundary, log.log_start_offset)
        return log.recovery_point, log.log_start_offset, self._boundary

    def run(self) -> None:
        """Cut and sync. An error is final: it takes the directory offline."""
        log = self.log
        disk = log.directory.disk
        if self.failure is not None:
            return
        try:
            self._say_what_stays()
            with self.lock:
                if log.closed:
                    return
                removed = self._begin_anew() if self._fully else self._shorten()
            if not self._fully:
                self._recall_producers()
            log.active_segment.file().sync()
            if log.epochs.unsynced:
                files.sync_path(disk, log.epochs.path)
                log.epochs.unsynced = False
            disk.sync_dir(log.path)
            if self._fully:
                self._begin()
            for path in removed:
                log.folder.remove_file(path)  # only now: a large file takes long to go
        except FileNotFoundError as error:
            if not log.closed:
                raise log.directory.fail(error, f"truncate {log.topic_partition}", half_done=True) from error
        except OSError as error:
            raise log.directory.fail(error, f"truncate {log.topic_partition}", half_done=True) from error

    def _say_what_stays(self) -> None:
        """In the manifest, before the others go."""
        manifest = self.log.manifest
        if self._fully:
            manifest.empty(self._boundary)
        else:
            manifest.lower(self._boundary)
        if manifest.is_kept or (self._fully and len(self.log.segments) > 1):
            manifest.save()

    def _begin(self) -> None:
        """Nothing of what was there can come back. Only now a checkpoint may tell of it."""
        log, offset = self.log, self._boundary
        log.begin_at(offset)
        log.manifest.begin()
        if log.manifest.is_kept:
            log.manifest.save()

    def _begin_anew(self) -> list[str]:
        log, offset = self.log, self._boundary
        removed = []
        while log.segments:
            removed += log.drop_last()
        log.folder.drop_snapshots(above=-1)
        log.folder.drop_jumps(log.folder.jumps)
        log.empty_at(offset)
        log.add_segment(offset, 0)
        return removed

    def _shorten(self) -> list[str]:
        log, boundary = self.log, self._boundary
        removed = []
        while len(log.segments) > 1 and log.active_segment.base_offset >= boundary:
            removed += log.drop_last()
        active = log.active_segment
        largest_timestamp(active)
        active.truncate_to(boundary)
        if active.roll_at == NEVER:  # it was loaded as a sealed one, or is the cleaner's
            log.resume_clock(active.created_ms)
        log.end_at(boundary)
        log.folder.drop_snapshots(above=boundary)
        log.folder.drop_jumps([jump for jump in log.folder.jumps if jump[1] > boundary])
        return removed

    def _recall_producers(self) -> None:
        """Into new states."""
        log = self.log
        producers = ProducerStates(log.directory.admits_producer)
        producer_replay.rebuild(
            log.directory.disk, producers, log.segments, log.path, log.folder.snapshot_offsets, log.end_offset
        )
        log.replace_producers(producers)

    def _note_end(self) -> None:
        """If the batch that will be the last lies behind a gap, nothing may be left to confirm it."""
        log, boundary = self.log, self._boundary
        segment = next((each for each in reversed(log.segments) if each.base_offset < boundary), None)
        last = None if segment is None else segment.locate(boundary - 1)
        if segment is None or last is None or last.base_offset == segment.base_offset:
            return
        before = segment.locate(last.base_offset - 1)
        if before is None or before.base_offset != last.base_offset:
            return
        with self.lock:
            if log.closed:
                return
            if (last.base_offset, boundary) not in log.folder.jumps:
                log.folder.note_jump(last.base_offset, boundary, tuple(end for _, end in log.folder.jumps))
        log.directory.disk.sync_dir(log.path)

    # --- on the loop ---

    def done(self) -> None:
        """After `run` has returned or raised: the log is open again, unless it was closed meanwhile."""
        log = self.log
        log.open_again()
        log.update_config(log.config)  # to the segment that is active now

    def cancel(self) -> None:
        """Instead of the rest. Nothing was cut."""
        self.log.open_again()


def lower_together(directory: LogDirectory, jobs: Iterable[TruncationJob]) -> None:
    """For a thread: find where each log will end, and lower what the disk promises of all of them."""
    lowered: dict[TopicPartition, Lowered] = {}
    try:
        for job in jobs:
            try:
                said = job.find_end()
            except CorruptLog as error:
                job.failure = error
                continue
            except FileNotFoundError:
                if not job.log.closed:
                    raise
                continue
            if not job.log.closed:
                lowered[job.log.topic_partition] = said
        if lowered:
            directory.lower_checkpoints(lowered)
    except OSError as error:
        raise directory.refuse(error, "lower recovery points") from error


def _batch_boundary(log: DurableLog, offset: int) -> int:
    """The first offset of the batch that holds `offset`: a batch cannot be cut in two.

    In a gap, as compaction leaves it, the log ends with the batch before: a restart would find the same end.
    """
    segment = next(each for each in reversed(log.segments) if each.base_offset <= offset)
    found = segment.locate(offset) if segment.size else None
    boundary = offset if found is None else min(found.base_offset, offset)
    if boundary == segment.base_offset:
        return boundary
    before = segment.locate(boundary - 1)
    if before is not None and before.base_offset < boundary:
        return boundary
    end = segment.base_offset
    for _, header in scan.headers(segment.unverified(), 0, segment.size):
        if header.base_offset >= boundary:
            break
        end = header.next_offset
    return end

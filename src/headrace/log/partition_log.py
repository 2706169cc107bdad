"""One partition on disk: a chain of segments, the epochs of its leaders, and its idempotent producers.

Synchronous and without a clock: `now_ms` is given. One owner calls it; nothing here is safe for threads
except `FlushJob.run` and `TruncationJob.run`. Every error of the disk is a StorageError, and takes the
whole directory offline. (A lack of descriptors is no error of the disk.)
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from headrace.core.errors import (
    CorruptBatch,
    DoesNotFollow,
    FencedLeaderEpoch,
    StorageError,
)
from headrace.core.ports import Buffer
from headrace.log import retention
from headrace.log.claims_file import first_checksum
from headrace.log.descriptors import is_lack_of_descriptors
from headrace.log.log_reads import LogReads
from headrace.log.producer_entry import RememberedBatch
from headrace.log.producer_replay import take_over
from headrace.log.producer_snapshot import SnapshotEntry
from headrace.log.retention import RetentionJob
from headrace.log.segment import MAX_RELATIVE_OFFSET, Segment
from headrace.log.truncation import TruncationJob, lower_together
from headrace.protocol.batch import CONTROL_FLAG, HEADER_SIZE, LOG_OVERHEAD, BatchHeader, check

_ASSIGN: Final = Struct(">qii").pack_into
"""Base offset, batch length, leader epoch: the head of a batch, outside its checksum."""
NEWEST_EPOCH: Final = 2**31 - 1
_NEW: Final = tuple.__new__
"""Makes a named tuple in half the time that its own constructor takes."""


class AppendResult(NamedTuple):
    base_offset: int
    last_offset: int
    append_time_ms: int
    """The log append time; -1 if the records keep their own timestamps."""
    log_start_offset: int
    duplicate: bool


class PartitionLog(LogReads):
    """What the broker uses: append, read, look up, shorten.

    One object in four layers, each in its own file: the chain of segments, durability, reads, and this one.
    It is one object because every append changes fields of all four.
    """

    __slots__ = ()

    # --- appending ---

    def append_as_leader(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        *,
        leader_epoch: int,
        now_ms: int,
        from_client: bool = True,
    ) -> AppendResult:
        """Append one batch that `protocol.batch.check` has passed; its offsets are assigned in place."""
        if not self.is_open or self.directory.failure is not None:
            self.require_open()
        if leader_epoch < self.latest_epoch:
            raise self._fenced(leader_epoch)
        if from_client:
            batch, header = self._rules.admit(batch, header, now_ms)
        has_producer = header[9] >= 0
        if has_producer and from_client:
            known = self.producers.check(header)
            if known is not None:
                return self._already_there(known)
        elif has_producer and not header[5] & CONTROL_FLAG:
            self.producers.check_own(header)
        size = header[1] + LOG_OVERHEAD
        delta = header[6]
        max_timestamp = header[8]
        base_offset = self.end_offset
        last_offset = base_offset + delta
        segment = self._active
        try:
            if (
                segment.size + size > self._roll_bytes
                or (max_timestamp if segment.rolls_by_timestamp else now_ms) > segment.roll_at
                or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
                or segment.index_full
            ) and self.may_roll(last_offset):
                segment = self._roll(now_ms)
            if leader_epoch != self.latest_epoch:
                self.begin_epoch(leader_epoch, base_offset)  # first: the batch can still be refused
            _ASSIGN(batch, 0, base_offset, header[1], leader_epoch)
            (segment.open_file or segment.file()).pwrite(batch, segment.size)
            if not segment.size:
                segment.first_checksum = first_checksum(batch)
                self._start_segment_clock(segment, max_timestamp, now_ms)
            segment.note(size, base_offset, last_offset, max_timestamp)
            self.end_offset = last_offset + 1
            if has_producer:
                if header[5] & CONTROL_FLAG:
                    take_over(
                        self.producers, segment, header._replace(base_offset=base_offset), lambda: batch
                    )
                else:
                    self.producers.apply(header, base_offset)
        except OSError as error:
            raise self._not_appended(segment, base_offset, size, error) from error
        if self.dirty_since_ms < 0:
            self.mark_unsynced(now_ms)
        stamped = max_timestamp if self._rules.log_append_time else -1
        return _NEW(AppendResult, (base_offset, last_offset, stamped, self.log_start_offset, False))

    def _already_there(self, known: RememberedBatch) -> AppendResult:
        """Answer a duplicate batch with the offsets that it got first."""
        return AppendResult(known.first_offset, known.last_offset, -1, self.log_start_offset, duplicate=True)

    def _not_appended(self, segment: Segment, base_offset: int, size: int, error: OSError) -> StorageError:
        """If the disk had no room for all of `size` bytes, truncate what was written, so that the log is as
        before. Once all bytes are written, nothing can be taken back."""
        doing = f"append to {self.topic_partition}"
        if segment.open_file is None and self.end_offset == base_offset and is_lack_of_descriptors(error):
            self._forget_epochs()
            return self.directory.fail(error, doing)  # the file could not be opened
        try:
            file = segment.file()
            if self.end_offset == base_offset and file.size() < segment.size + size:
                file.truncate(segment.size)
                self._forget_epochs()
                return self.directory.refuse(error, doing)
        except OSError as worse:
            error = worse
        return self.directory.fail(error, doing, half_done=True)

    def _forget_epochs(self) -> None:
        """Forget epochs that began with a batch that was not appended. They have no records."""
        self.epochs.forget_from(self.end_offset)
        self.latest_epoch = self.epochs.latest

    def _fenced(self, leader_epoch: int) -> FencedLeaderEpoch:
        return FencedLeaderEpoch(
            f"{self.topic_partition} is in leader epoch {self.latest_epoch}, not {leader_epoch}"
        )

    def append_as_follower(
        self,
        batches: Buffer,
        *,
        now_ms: int = 0,
        leader_epoch: int = NEWEST_EPOCH,
    ) -> int:
        """Append what a leader sent, offsets and epochs as they are; a cut last batch is left out.

        Raises CorruptBatch, with nothing changed, if a checksum is wrong, an offset goes back, or a batch is
        of a later epoch than `leader_epoch`, the epoch of the fetch.
        """
        self.require_open()
        with memoryview(batches) as view:
            checked = self._check_run(view, self.end_offset, leader_epoch)
            try:
                if checked:
                    self._note_gap(checked)
                if len(checked) > 1 and self._holds_all(checked, now_ms):
                    # One write for all of them. After a crash, recovery cuts it to whole batches.
                    segment, (last_at, last) = self._active, checked[-1]
                    for _, header in checked:
                        self._begin_epoch_of(header)
                    self._write(segment, view[: last_at + last.size])
                    for at, header in checked:
                        self._note_appended(segment, view[at : at + header.size], header)
                else:
                    for at, header in checked:
                        self._append_checked(view[at : at + header.size], header, now_ms)
            except OSError as error:
                doing = f"append to {self.topic_partition}"
                raise self.directory.fail(error, doing, half_done=True) from error
        if checked:
            self.mark_unsynced(now_ms)
        return self.end_offset

    def check_run(self, batches: memoryview, expected: int, newest_epoch: int) -> None:
        """Raises CorruptBatch if they could not be appended to a log that ends at `expected`."""
        self._check_run(batches, expected, newest_epoch)

    def _check_run(self, view: memoryview, expected: int, newest_epoch: int) -> list[tuple[int, BatchHeader]]:
        checked, at, epoch = [], 0, self.latest_epoch
        while len(view) - at >= HEADER_SIZE:
            length = int.from_bytes(view[at + 8 : at + 12], "big", signed=True)
            if length + LOG_OVERHEAD > len(view) - at and length > 0:
                break
            header = check(view, at)
            if header.base_offset < expected:
                raise DoesNotFollow(f"offset {header.base_offset} where {expected} is the least")
            if header.leader_epoch < epoch:
                raise DoesNotFollow(f"leader epoch {header.leader_epoch} after {epoch}")
            if header.leader_epoch > newest_epoch:
                raise CorruptBatch(f"leader epoch {header.leader_epoch} from a leader of {newest_epoch}")
            checked.append((at, header))
            expected, epoch = header.next_offset, header.leader_epoch
            at += header.size
        return checked

    def _note_gap(self, checked: list[tuple[int, BatchHeader]]) -> None:
        """The last batch may follow a gap that compaction has left in the leader's log. See `note_jump`."""
        last = checked[-1][1]
        before = checked[-2][1].next_offset if len(checked) > 1 else self.end_offset
        if last.base_offset != before:
            ends = (self.end_offset, self.synced_offset, self._flush_offset)
            self.folder.note_jump(last.base_offset, last.next_offset, ends)

    def _write(self, segment: Segment, batches: memoryview) -> None:
        try:
            segment.file().pwrite(batches, segment.size)
        except OSError as error:
            raise self._not_appended(segment, self.end_offset, len(batches), error) from error

    def _append_checked(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        segment = self._active
        if (
            segment.size + header.size > self._roll_bytes
            or (header.max_timestamp if segment.rolls_by_timestamp else now_ms) > segment.roll_at
            or header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
            or segment.index_full
        ) and self.may_roll(header.last_offset):
            far = header.last_offset - self.end_offset > MAX_RELATIVE_OFFSET
            segment = self._roll(now_ms, header.base_offset if far else None)
        self._begin_epoch_of(header)
        self._write(segment, batch)
        if not segment.size:
            segment.first_checksum = first_checksum(batch)
            self._start_segment_clock(segment, header.max_timestamp, now_ms)
        self._note_appended(segment, batch, header)

    def _holds_all(self, checked: list[tuple[int, BatchHeader]], now_ms: int) -> bool:
        """Whether the active segment is not empty and has room for all these batches. False if in doubt."""
        segment = self._active
        at, last = checked[-1]
        if (
            not segment.size
            or segment.size + at + last.size > self._roll_bytes
            or last.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
            or segment.index_full
            or segment.index.count + len(checked) >= segment.max_index_entries
        ):
            return False
        if not segment.rolls_by_timestamp:
            return now_ms <= segment.roll_at
        return all(header.max_timestamp <= segment.roll_at for _, header in checked)

    def _note_appended(self, segment: Segment, batch: memoryview, header: BatchHeader) -> None:
        """Account for a batch that is in the file but not yet in the segment's size and offsets."""
        segment.note(header.size, header.base_offset, header.last_offset, header.max_timestamp)
        self.end_offset = header.next_offset
        take_over(self.producers, segment, header, lambda: batch)

    def _begin_epoch_of(self, header: BatchHeader) -> None:
        """Call this before writing the batch: if there is no room for the epoch, the batch can be refused."""
        if header.leader_epoch > self.latest_epoch:
            self.begin_epoch(header.leader_epoch, header.base_offset)

    def begin_epoch(self, epoch: int, start_offset: int | None = None) -> None:
        """Begin a leader epoch, by default at the end offset. An epoch before the latest changes nothing."""
        try:
            self.epochs.assign(epoch, self.end_offset if start_offset is None else start_offset)
        except OSError as error:
            self._forget_epochs()
            raise self.directory.refuse(error, f"note an epoch of {self.topic_partition}") from error
        self.latest_epoch = self.epochs.latest

    # --- shortening ---

    def take_truncation(self, offset: int, *, fully: bool = False) -> TruncationJob:
        """Close the log until the returned job has dropped everything from `offset` on. It drops a batch that
        contains `offset` as a whole. `fully`: drop everything, and go on at `offset`."""
        self.require_open()
        job = TruncationJob(self, offset, fully=fully)
        self.close_for(job)
        return job

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on. Returns when that is durable."""
        if offset < self.end_offset:
            self._truncate(self.take_truncation(offset))
        else:
            self.require_open()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and go on at `offset`. Returns when that is durable."""
        self._truncate(self.take_truncation(offset, fully=True))

    def _truncate(self, job: TruncationJob) -> None:
        try:
            lower_together(self.directory, (job,))
            job.run()
        finally:
            job.done()
        if job.failure is not None:
            raise job.failure

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up to `offset` and return the log start. Retention removes the segments.

        The caller checks that `offset` is not above the high watermark, and tells nobody before the log-start
        checkpoint was written (`durable_start`): until then a crash brings the records back.
        """
        self.require_open()
        if offset > self.end_offset:
            raise self._out_of_range(offset)
        if offset > self.log_start_offset:
            self.raise_log_start(offset)
            self.directory.note_raised(self)
        return self.log_start_offset

    def take_retention(self, now_ms: int, high_watermark: int) -> RetentionJob | None:
        """Raise the log start past segments that exceed retention. Return a job that removes them."""
        self.require_open()
        try:
            return retention.take(self, now_ms, high_watermark)
        except OSError as error:
            raise self.directory.fail(error, f"remove segments of {self.topic_partition}") from error

    def begin_with(self, entries: Iterable[SnapshotEntry], epoch: int) -> None:
        """The log is empty, and what lies before it is elsewhere: what it knew of producers, and the epoch of
        the last record there; none if there is no record."""
        self.require_open()
        try:
            self.producers.restore(entries, self.end_offset)
            self.take_snapshot()
        except OSError as error:
            raise self.directory.fail(error, f"begin {self.topic_partition}") from error
        if epoch >= 0:
            self.begin_epoch(epoch)

    def take_removal(self, offset: int) -> RetentionJob | None:
        """Raise the log start past sealed segments that end at `offset` or before it, and that are kept
        elsewhere. Return a job that removes them."""
        self.require_open()
        return retention.take_until(self, offset)

    def enforce_retention(self, now_ms: int, high_watermark: int) -> int:
        """Remove segments that exceed retention or lie before the log start. Return how many."""
        self.require_open()
        try:
            return retention.enforce(self, now_ms, high_watermark)
        except OSError as error:
            raise self.directory.fail(error, f"remove segments of {self.topic_partition}") from error

"""Reading a log: ranges of its files, offsets by time, and the aborted transactions of a range.

`read` answers like Kafka: the last batch of an answer may be cut off at `max_bytes`, which every client copes
with, and which saves looking for its beginning. Only the first one is whole if it is to be sent at all.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from headrace.core.errors import OffsetOutOfRange
from headrace.core.ports import FileRange
from headrace.log import aborted, lookup, resident_reads
from headrace.log.claims_file import FirstBatch, first_checksum
from headrace.log.durable_log import DurableLog
from headrace.log.empty_file import EMPTY_FILE
from headrace.log.lookup import Answers, TimestampOffset
from headrace.log.read_state import ColdRead
from headrace.log.segment import Segment
from headrace.log.transaction_index import AbortedTransaction
from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD

LogSlice = FileRange
EMPTY_SLICE: Final = LogSlice(EMPTY_FILE, 0, 0)
_NEW: Final = tuple.__new__
"""Makes a named tuple in half the time that its own constructor takes."""


class LogReads(DurableLog):
    __slots__ = ()

    def read(self, offset: int, max_bytes: int, *, limit: int, min_one: bool) -> LogSlice:
        """Where the bytes from the batch that holds `offset` on are, up to `limit`, within one segment."""
        if not self.is_open or self.directory.failure is not None:
            self.require_open()
        segment = self._active
        if offset < segment.base_offset:
            return self._read_sealed(offset, max_bytes, limit, min_one)
        end_offset = self.end_offset
        if offset > end_offset or offset < self.log_start_offset:
            raise self._out_of_range(offset)
        if offset >= limit or offset == end_offset:
            return EMPTY_SLICE
        try:
            position = segment.position_of(offset)
            end = segment.size if limit >= end_offset else segment.position_of(limit)
            return self._slice(segment, position, end, max_bytes, min_one)
        except OSError as error:
            raise self.directory.fail(error, f"read {self.topic_partition}") from error

    def _read_sealed(self, offset: int, max_bytes: int, limit: int, min_one: bool) -> LogSlice:
        if offset < self.log_start_offset:
            raise self._out_of_range(offset)
        place = max(bisect_right(self._bases, offset) - 1, 0)
        try:
            while place < len(self.segments):
                segment = self.segments[place]
                if offset >= limit or segment.base_offset >= limit:
                    break
                position = segment.position_of(offset)
                if position < segment.size:
                    ends = self._bases[place + 1] if place + 1 < len(self._bases) else self.end_offset
                    end = segment.size if limit >= ends else segment.position_of(limit)
                    return self._slice(segment, position, end, max_bytes, min_one)
                place += 1  # compaction left nothing at the end of that segment
        except OSError as error:
            raise self.directory.fail(error, f"read {self.topic_partition}") from error
        return EMPTY_SLICE

    def read_resident(
        self, offset: int, max_bytes: int, *, limit: int, min_one: bool, probe: bool = True
    ) -> LogSlice:
        """As `read`, for the event loop: ColdRead where that would wait for a disk, or give out bytes that
        came from one and were not verified. `probe`: look whether the range is in memory as well."""
        if self.closed or self.directory.failure is not None:
            self.require_open()
        end_offset = self.end_offset
        if offset > end_offset or offset < self.log_start_offset:
            raise self._out_of_range(offset)
        if offset >= limit or offset == end_offset:
            return EMPTY_SLICE
        segment = self._active
        if offset >= segment.base_offset and segment.open_file is not None:
            position = segment.recent_position(offset)
            if position >= segment.appended_from:  # what was just appended is in memory
                end = segment.size if limit >= end_offset else segment.recent_position(limit)
                if end >= 0 and (end - position <= max_bytes):
                    return _NEW(LogSlice, (segment.open_file, position, end - position))
        try:
            found = resident_reads.find_range(self, offset, max_bytes, limit, min_one, probe)
        except OSError as error:
            raise self.directory.fail(error, f"read {self.topic_partition}") from error
        return EMPTY_SLICE if found is None else found

    def batch_in_memory(self, offset: int) -> FirstBatch | None:
        """How the batch that holds `offset` begins, if that can be told without waiting for a disk."""
        place = max(bisect_right(self._bases, offset) - 1, 0)
        segment = self.segments[place]
        try:
            file = segment.file()  # the next append opens it too
            position = resident_reads.find_resident(segment, offset)
        except (ColdRead, OSError):
            return None
        head = file.pread_resident(HEADER_SIZE, position)
        return None if head is None else FirstBatch(offset, first_checksum(head))

    def _slice(self, segment: Segment, position: int, end: int, max_bytes: int, min_one: bool) -> LogSlice:
        length = end - position
        file = segment.file()
        if length > max_bytes:
            first = int.from_bytes(segment.unverified().pread(4, position + 8), "big") + LOG_OVERHEAD
            if first > max_bytes:
                if not min_one:
                    return EMPTY_SLICE
                max_bytes = first
            if length > max_bytes:
                length = max_bytes
        if length <= 0:
            return EMPTY_SLICE
        if not file.is_resident(position, length):
            segment.distrust()  # whoever reads it now need not verify it
        return LogSlice(file, position, length)

    def size_from(self, offset: int) -> int:
        """About how many bytes lie from `offset` on: exactly, if that is in the active segment."""
        size = 0
        for segment in reversed(self.segments):
            size += segment.size
            if segment.base_offset <= offset:
                return size - (segment.position_of(offset) if segment is self._active else 0)
        return size

    def aborted_in(self, offset: int, records: LogSlice, *, wait: bool = True) -> list[AbortedTransaction]:
        """The aborted transactions that `records`, read from `offset` on, may hold records of. Without
        `wait`, ColdRead where that would wait for a disk."""
        try:
            return aborted.aborted_in(self, offset, records, wait=wait)
        except OSError as error:
            raise self.directory.fail(error, f"read {self.topic_partition}") from error

    def _out_of_range(self, offset: int) -> OffsetOutOfRange:
        return OffsetOutOfRange(
            f"offset {offset} of {self.topic_partition} is outside "
            f"[{self.log_start_offset}, {self.end_offset}]"
        )

    def offset_for_timestamp(
        self, timestamp: int, limit: int, answers: Answers | None = None
    ) -> TimestampOffset | None:
        """The first record below `limit` whose time is at least `timestamp`. Raises `Unopened` if a batch is
        to be opened elsewhere first, which the caller allows by giving the answers that there are."""
        self.require_open()
        try:
            return lookup.offset_for_timestamp(self, timestamp, limit, answers)
        except OSError as error:
            raise self.directory.fail(error, f"look up a time in {self.topic_partition}") from error

    def max_timestamp_offset(self, limit: int, answers: Answers | None = None) -> TimestampOffset | None:
        """The first record below `limit` with the largest time of all; `answers` as above."""
        self.require_open()
        try:
            return lookup.max_timestamp_offset(self, limit, answers)
        except OSError as error:
            raise self.directory.fail(error, f"look up a time in {self.topic_partition}") from error

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(epoch, self.end_offset)

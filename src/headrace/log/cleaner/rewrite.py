"""Writing a group of segments anew, without what later records have made void.

What stays, besides the latest record of each key:
- tombstones, and markers of which nothing else is left, until their delete horizon;
- the header of the batch that holds a producer's last sequence, and the last batch of the group: without it
  the segment would end before the next one begins, and nobody could tell compaction from a loss;
- a batch whose checksum is right and whose records cannot be read, just as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headrace.config.values import LONG_MAX
from headrace.core.errors import ClientError, CorruptBatch, CorruptLog
from headrace.core.ports import Buffer, Disk, File
from headrace.log import files, segments
from headrace.log.cleaner.batch_filter import (
    Opened,
    delete_horizon,
    empty_batch,
    open_keys,
    with_records,
)
from headrace.log.cleaner.job import CleanedGroup, CleaningJob, SourceSegment
from headrace.log.cleaner.key_map import KeyMap
from headrace.log.cleaner.segment_writer import SegmentWriter
from headrace.log.cleaner.transactions import MetTransactions
from headrace.log.segment import MAX_RELATIVE_OFFSET
from headrace.protocol import record_spans as spans
from headrace.protocol.batch import DELETE_HORIZON_FLAG, HEADER_SIZE, BatchHeader, check, read_header
from headrace.protocol.records import open_batch

MAX_SEGMENT_BYTES: Final = 0x7FFFFFFF
"""A position in the index has 32 bits."""
Pace = Callable[[int], None]
"""Told of bytes that were read or written; may wait."""


class Rewriter:
    """Takes the sources of a job one after the other: transactions reach from one into the next."""

    __slots__ = (
        "_changed",
        "_disk",
        "_ends",
        "_job",
        "_kept_records",
        "_keys",
        "_met",
        "_pace",
        "_unreadable",
    )

    def __init__(self, disk: Disk, job: CleaningJob, keys: KeyMap, pace: Pace) -> None:
        self._disk = disk
        self._job = job
        self._ends = dict(job.ends())
        self._keys = keys
        self._pace = pace
        self._met = MetTransactions(job.aborted)
        self._changed = False
        self._kept_records = 0
        self._unreadable: list[int] = []

    def rewrite(self, place: int, sources: Sequence[SourceSegment]) -> CleanedGroup:
        """Make one segment of the first of these sources, and of as many more as fit."""
        job, base_offset = self._job, sources[0].base_offset
        self._changed, self._kept_records, self._unreadable = False, 0, []
        writer = SegmentWriter(self._disk, job.folder, base_offset, job.index_interval_bytes)
        read_records = read_bytes = count = 0
        goes_on = True
        while goes_on and count < len(sources):
            source = sources[count]
            count += 1
            following = sources[count] if count < len(sources) else None
            read_bytes += source.size
            copied, goes_on = self._copy(source, writer, base_offset, following)
            read_records += copied
        entries = self._met.take_entries()
        writer.finish(entries)
        before = self._entries_in(base_offset, self._ends[sources[count - 1]])
        return CleanedGroup(
            place=place,
            segments=count,
            base_offset=base_offset,
            size=writer.size,
            changed=self._changed or count > 1 or len(entries) != before,
            read_bytes=read_bytes,
            written_bytes=writer.size,
            read_records=read_records,
            kept_records=self._kept_records,
            left_as_they_are=tuple(self._unreadable),
        )

    def _entries_in(self, begin: int, end: int) -> int:
        """How many aborted transactions ended between these offsets."""
        return sum(begin <= entry.last_offset < end for entry in self._job.aborted)

    def _takes(self, following: SourceSegment | None, writer: SegmentWriter, base_offset: int) -> bool:
        """Whether the next source goes into the same segment.

        As long as less than half of a segment has come together: so a run of segments of which nothing is
        left becomes one, and not as many with nothing but a header inside: librdkafka takes a row of answers
        without a record for records that are too large for it.
        """
        job = self._job
        if following is None:
            return False
        entries = following.size // max(job.index_interval_bytes, HEADER_SIZE) + 1
        return (
            writer.size + following.size <= job.segment_bytes
            or (writer.size <= job.segment_bytes // 2 and writer.size + following.size <= MAX_SEGMENT_BYTES)
        ) and (
            writer.index_entries + entries <= job.max_index_entries
            and self._ends[following] - 1 - base_offset <= MAX_RELATIVE_OFFSET
        )

    def _copy(
        self, source: SourceSegment, writer: SegmentWriter, base_offset: int, following: SourceSegment | None
    ) -> tuple[int, bool]:
        """One source segment; how many records were in it, and whether the next one is taken as well."""
        read_records = 0
        goes_on = self._takes(following, writer, base_offset)
        file = self._open(source)
        try:
            for position, header, batch in segments.batches(
                file,
                0,
                source.size,
                least=source.base_offset,
                below=self._ends[source],
                chunk_bytes=self._job.io_bytes,
            ):
                read_records += header.record_count
                self._pace(header.size)
                is_last = position + header.size == source.size
                if is_last:
                    goes_on = self._takes(following, writer, base_offset)
                try:
                    left = self._filter(header, batch, is_last and not goes_on)
                except CorruptBatch as error:
                    raise CorruptLog(f"offset {header.base_offset} of {self._job.folder}: {error}") from None
                self._write(writer, header, batch, left)
        finally:
            file.close()
        return read_records, goes_on

    def _write(
        self, writer: SegmentWriter, header: BatchHeader, batch: memoryview, left: Buffer | None
    ) -> None:
        if left is batch:
            writer.add(header, batch)
            self._kept_records += header.record_count
        else:
            self._changed = True
            if left is None:
                return
            changed = read_header(left)
            writer.add(changed, left)
            self._kept_records += changed.record_count
        self._pace(len(left))

    def _open(self, source: SourceSegment) -> File:
        return self._disk.open(f"{self._job.folder}/{files.numbered(source.base_offset)}{files.LOG}")

    # --- one batch ---

    def _filter(self, header: BatchHeader, batch: memoryview, ends_here: bool) -> Buffer | None:
        """What is to be written in its place: itself, another, or nothing. CorruptBatch by its checksum.

        That comes first: nothing is dropped because of what a flipped bit says.
        """
        check(batch)
        stays = ends_here or self._is_last_of_producer(header)
        if header.is_control:
            return self._filter_marker(header, batch, stays)
        if self._met.meet_data(header):
            return self._without_records(header, batch, stays)
        if header.record_count == 0:
            return self._without_records(header, batch, stays)
        if header.base_offset >= self._keys.end:
            return batch
        if not header.attributes & DELETE_HORIZON_FLAG and self._keys.knows(header.base_offset):
            return self._filter_mapped(header, batch, stays)
        return self._filter_by_key(header, batch, stays)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._job.producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _without_records(self, header: BatchHeader, batch: memoryview, stays: bool) -> Buffer | None:
        if not stays:
            return None
        return batch if header.record_count == 0 else empty_batch(header)

    def _filter_mapped(self, header: BatchHeader, batch: memoryview, stays: bool) -> Buffer | None:
        """The map has seen every record of it, in order and without tombstones: its offsets are enough."""
        left = self._keys.survivors(header.base_offset, header.last_offset)
        if not left:
            return self._without_records(header, batch, stays)
        if len(left) == header.record_count:
            return batch
        _, body = open_batch(batch)
        return with_records(header, body, [at - header.base_offset for at in left], self._job.levels)

    def _filter_by_key(self, header: BatchHeader, batch: memoryview, stays: bool) -> Buffer | None:
        try:
            opened = open_keys(batch)
        except ClientError:
            self._unreadable.append(header.base_offset)
            return batch
        if not opened.has_tombstones and not self._keys.touches(opened.keys):
            return batch
        base, is_latest = header.base_offset, self._keys.is_latest
        kept = [place for place, key in enumerate(opened.keys) if is_latest(key, base + opened.delta(place))]
        horizon = None
        if opened.has_tombstones and kept:
            kept, horizon = self._apply_horizon(opened, kept)
        if not kept:
            return self._without_records(header, batch, stays)
        if len(kept) == header.record_count and horizon is None:
            return batch
        return with_records(header, opened.body, kept, self._job.levels, horizon_ms=horizon)

    def _apply_horizon(self, opened: Opened, kept: list[int]) -> tuple[list[int], int | None]:
        """Without tombstones whose time is over; or the horizon that the batch gets now."""
        bounds = spans.read_bounds(opened.body, opened.header.record_count)
        values = [place for place in kept if not spans.is_tombstone(opened.body, bounds[place])]
        if len(values) == len(kept):
            return kept, None
        horizon = delete_horizon(opened.header)
        if horizon is None:
            return kept, self._new_horizon
        return (values if horizon <= self._job.now_ms else kept), None

    @property
    def _new_horizon(self) -> int:
        """A retention may be for ever, but no time is later than the last that a header can say."""
        return min(self._job.now_ms + self._job.delete_retention_ms, LONG_MAX)

    def _filter_marker(self, header: BatchHeader, batch: memoryview, stays: bool) -> Buffer | None:
        """Markers wait for their horizon like tombstones, once nothing else is left of their transaction.

        One that is the last word of its producer stays whole: its record has the coordinator's epoch.
        """
        is_void = self._met.meet_marker(header, batch)
        if header.record_count == 0:
            return batch if stays else None
        if not is_void:
            return batch
        horizon = delete_horizon(header)
        if horizon is not None:
            return batch if stays or horizon > self._job.now_ms else None
        _, body = open_batch(batch)
        places = range(header.record_count)
        return with_records(header, body, places, self._job.levels, horizon_ms=self._new_horizon)

"""Reads for the event loop: what is in memory and verified is found without asking a disk, all else is a
ColdRead, which a thread brings (`read_ahead.py`).

A reader that comes in order is led from range to range: each ends where a batch ends that the index knows of,
and the offset of the next batch is remembered with its place. Its next read asks no index.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from headrace.core.errors import CorruptLog
from headrace.core.ports import File, FileRange
from headrace.log import scan
from headrace.log.index_file import WrongIndex
from headrace.log.read_state import ColdRead
from headrace.log.residency import NotResident
from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, read_header

if TYPE_CHECKING:
    from headrace.log.segment import Segment
    from headrace.log.segment_chain import SegmentChain


class _InMemory:
    """A file for whoever must not wait for a disk."""

    __slots__ = ("_file",)

    def __init__(self, file: File) -> None:
        self._file = file

    def pread(self, length: int, position: int) -> bytes:
        data = self._file.pread_resident(length, position)
        if data is None:
            raise NotResident
        return data


def find_resident(segment: Segment, offset: int) -> int:
    """Where the first batch that reaches `offset` begins; the segment's size when none does."""
    if offset <= segment.base_offset:
        return 0
    known = segment.recent_position(offset)
    if known >= 0:
        return known
    reads = segment.reads or segment.read_state()
    position = reads.position_of(offset)
    if position is None:
        file = segment.open_file
        if file is None:
            raise ColdRead(segment, offset)
        try:
            near, last_offset = segment.index.lookup(offset, wait=False)
        except NotResident:
            raise ColdRead(segment, offset) from None
        try:
            found = scan.find_batch(
                _InMemory(file), near, segment.size, offset, segment.base_offset, last_offset
            )
        except (NotResident, WrongIndex, CorruptLog):
            # What is wrong with the index or with the batches is for the thread to say. And what is not all
            # in memory may have left it in part.
            segment.distrust()
            raise ColdRead(segment, offset) from None
        position = segment.size if found is None else found.position
        is_passed_over = found is None or found.base_offset > offset
        if is_passed_over and not segment.is_trusted(near, position):
            raise ColdRead(segment, offset)  # compaction left nothing there, or a header is damaged
        reads.learn(offset, position)
    return position


def find_range(
    log: SegmentChain, offset: int, max_bytes: int, limit: int, min_one: bool, probe: bool
) -> FileRange | None:
    """Where the bytes from the batch that holds `offset` on are, up to `limit`, within one segment."""
    segments = log.segments
    place = max(bisect_right(segments, offset, key=_base_offset) - 1, 0)
    while place < len(segments):
        segment = segments[place]
        if segment.base_offset >= limit:
            return None
        position = find_resident(segment, offset)
        if position < segment.size:
            ends = segments[place + 1].base_offset if place + 1 < len(segments) else log.end_offset
            end = segment.size if limit >= ends else find_resident(segment, limit)
            return _range(segment, offset, position, end, max_bytes, min_one, probe)
        place += 1  # compaction left nothing at the end of that segment
    return None


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _range(
    segment: Segment, offset: int, position: int, end: int, max_bytes: int, min_one: bool, probe: bool
) -> FileRange | None:
    file = segment.open_file
    if file is None:
        raise ColdRead(segment, offset)
    reads = segment.reads or segment.read_state()
    if reads.damage:
        end = reads.end_before_damage(segment.path(".log"), position, end)
    next_offset = -1
    if end - position > max_bytes:
        end, next_offset = _cut(segment, file, offset, position, end, max_bytes)
        if end - position > max_bytes and not min_one:
            return None
    if end <= position:
        return None
    if not segment.is_trusted(position, end):
        raise ColdRead(segment, offset)
    if probe and not file.is_resident(position, end - position):
        segment.distrust()
        raise ColdRead(segment, offset)
    if reads.is_asked_again(offset):
        segment.distrust()
        raise ColdRead(segment, offset)
    if next_offset >= 0:
        reads.learn(next_offset, end)  # the reader goes on there
    return FileRange(file, position, end - position)


def _cut(
    segment: Segment, file: File, offset: int, position: int, end: int, max_bytes: int
) -> tuple[int, int]:
    """Where a range of `max_bytes` ends, or the first batch if that is larger. With it the first offset of
    the batch that follows, which the index knows; -1 if the range does not end with a batch."""
    known = segment.index.last_before(position + max_bytes)
    if known is not None and known[1] > position:
        last_offset, until = known
        raw = file.pread_resident(HEADER_SIZE, until)
        if raw is not None:
            header = read_header(raw) if len(raw) == HEADER_SIZE else None
            if header is not None and header.last_offset == last_offset:
                return until, header.base_offset
            # Whoever believed it might cut off the first batch, and its reader would come no further.
            if segment.read_state().doubt_index():
                raise ColdRead(segment, offset)
    length = file.pread_resident(4, position + 8)
    if length is None:
        segment.distrust()
        raise ColdRead(segment, offset)
    first = int.from_bytes(length, "big") + LOG_OVERHEAD
    return position + (min(first, end - position) if first > max_bytes else max_bytes), -1

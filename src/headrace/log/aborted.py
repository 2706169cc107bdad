"""Which aborted transactions a reader of a range has to know, to pass over their records.

An aborted transaction stands in the index of the segment that holds its marker. So those after the range are
looked at too, until one says that everything in the range was decided when it was written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.core.ports import FileRange
from headrace.log import scan
from headrace.log.index_file import WrongIndex
from headrace.log.read_state import ColdRead
from headrace.log.residency import NotResident
from headrace.log.resident_reads import find_resident
from headrace.log.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from headrace.log.segment import Segment
    from headrace.log.segment_chain import SegmentChain


def aborted_in(
    log: SegmentChain, offset: int, records: FileRange, *, wait: bool = True
) -> list[AbortedTransaction]:
    """Those of `records`, which `log.read` has found for `offset`. Perhaps a few more: where the records end
    is only known as well as the offset index knows it. Without `wait`, ColdRead where a disk would have to
    be asked."""
    place = max(bisect_right(log.segments, offset, key=_base_offset) - 1, 0)
    if not wait and not all(segment.transactions.is_known for segment in log.segments[place:]):
        raise ColdRead(log.segments[place], offset, transactions=True)
    if not any(segment.transactions.entries() for segment in log.segments[place:]):
        return []
    while place + 1 < len(log.segments) and not _holds(log.segments[place], offset, records, wait):
        place += 1
    end = _end_of(log, place, records, wait)
    found: list[AbortedTransaction] = []
    for segment in log.segments[place:]:
        if segment.transactions.collect(offset, end, found):
            break
    return found


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _holds(segment: Segment, offset: int, records: FileRange, wait: bool) -> bool:
    """A segment whose end was compacted away answers nothing for its last offsets: the next one does."""
    position = segment.position_of(offset) if wait else find_resident(segment, offset)
    return position == records.position and records.position < segment.size


def _end_of(log: SegmentChain, place: int, records: FileRange, wait: bool) -> int:
    """An offset at or behind the last record of the range. Without the index, the end of the segment."""
    segment = log.segments[place]
    end = records.position + records.length
    if end < segment.size:
        offset = _end_by_index(segment, end, wait)
        if offset is not None:
            return offset
    return log.segments[place + 1].base_offset if place + 1 < len(log.segments) else log.end_offset


def _end_by_index(segment: Segment, end: int, wait: bool) -> int | None:
    """The last offset of a batch at or behind `end`. One that is too low would hide aborted transactions, so
    it is compared with its batch."""
    file = segment.open_file
    if wait or file is None:
        pread: Callable[[int, int], bytes | None] = segment.unverified().pread
    else:
        pread = file.pread_resident
    try:
        known = segment.index.first_from(end, wait=wait)
        if known is None:
            return None
        last_offset, position = known
        if position >= end and scan.is_batch(pread, position, segment.size, last_offset):
            return last_offset
    except (NotResident, WrongIndex):
        pass
    return None

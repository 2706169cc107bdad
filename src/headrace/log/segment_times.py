"""What the time index of a segment says, once the batches have confirmed it: the largest time, and where to
look for one. An index that is not true of them is made again first. All of it may wait for the disk."""

from __future__ import annotations

from typing import Final

from headrace.core.errors import CorruptBatch, CorruptLog
from headrace.core.ports import Disk
from headrace.log import files, scan
from headrace.log.index_file import WrongIndex
from headrace.log.segment import UNKNOWN_TIMESTAMP, Segment
from headrace.protocol.batch import check

_COMPARED_BYTES: Final = 1024 * 1024
"""Before the batch with the largest time: as far as this no other one has that time."""


def time_floor(segment: Segment, timestamp: int) -> int:
    """An offset before which no batch of the segment reaches `timestamp`."""
    try:
        found = segment.times.lookup(timestamp)
        is_right = found is None or (
            segment.base_offset <= found[2] <= found[1] and segment.agrees(found[0], found[1])
        )
    except WrongIndex:
        is_right = False
    if not is_right:
        segment.put_indexes_right()
        found = segment.times.lookup(timestamp)
    # From the entry before: a wrong one may name a later batch that happens to have the same time.
    return segment.base_offset if found is None else found[2]


def largest_timestamp(segment: Segment) -> int:
    if segment.max_timestamp == UNKNOWN_TIMESTAMP:
        try:
            found = _last_time(segment)
        except WrongIndex:
            segment.put_indexes_right()
        else:
            segment.max_timestamp, segment.max_timestamp_offset = found
    return segment.max_timestamp


def retention_timestamp(segment: Segment, disk: Disk) -> int:
    """What retention by time goes by: the largest timestamp, or without any the time of the file."""
    largest = largest_timestamp(segment)
    return largest if largest >= 0 else disk.modified_ms(segment.path(files.LOG))


def _last_time(segment: Segment) -> tuple[int, int]:
    """The last entry of the time index, WrongIndex if that cannot be the largest time, or the first batch
    that has it."""
    times, reads = segment.times, segment.unverified()
    largest, offset = times.last()
    if times.count:
        before = times.offset_before(times.count - 1)
        if not segment.base_offset <= before <= offset or not segment.agrees(largest, offset):
            raise WrongIndex(f"{times.path}: the last entry is not true of the batches")
        begin, end = segment.position_of(before), segment.position_of(offset)
        if begin < end <= begin + _COMPARED_BYTES:
            for _, header in scan.headers(reads, begin, end):
                if header.max_timestamp >= largest:
                    raise WrongIndex(f"{times.path}: the last entry is not the first of its time")
    if _is_younger_behind(segment, largest):
        raise WrongIndex(f"{times.path} lacks its end")
    return largest, offset


def _is_younger_behind(segment: Segment, timestamp: int) -> bool:
    """Whether a batch behind the last entry of the offset index is: entries of the time index are missing
    then. What is damaged there says nothing."""
    reads = segment.unverified()
    last_offset, position = segment.index.last()
    if segment.index.count and not scan.is_batch(reads.pread, position, segment.size, last_offset):
        return False
    try:
        for at, header in scan.headers(reads, position, segment.size):
            if header.max_timestamp > timestamp:
                check(reads.pread(header.size, at))
                return True
    except (CorruptLog, CorruptBatch):
        pass
    return False

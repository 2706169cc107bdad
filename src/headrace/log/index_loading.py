"""Taking the index files of a segment that was written before as they are, if they can be true."""

from __future__ import annotations

from headrace.core.errors import CorruptLog
from headrace.core.ports import Disk
from headrace.log import scan
from headrace.log.segment import Segment


def load_indexes(segment: Segment, disk: Disk) -> bool:
    """Take the index files as they are. False when they cannot be true: rebuild them."""
    for index in (segment.index, segment.times):
        try:
            size = disk.size(index.path)
        except FileNotFoundError:
            return False
        if size % index.ENTRY.size:
            return False
        index.assume(size // index.ENTRY.size)
    if not (segment.index.is_sane(segment.size) and segment.times.is_sane()):
        return False
    segment.times.load_last()
    return segment.tail_is_indexed() and not _lacks_entries(segment)


def _lacks_entries(segment: Segment) -> bool:
    """Whether an index is empty that cannot be."""
    if not segment.size or (segment.index.count and segment.times.count):
        return False
    try:
        for position, header in scan.headers(segment.file(), 0, segment.size):
            if not segment.times.count and header.max_timestamp >= 0:
                return True
            if position > segment.index_interval:
                return not segment.index.count
    except CorruptLog:
        return True
    return False

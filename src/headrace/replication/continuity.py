"""Whether what another cluster has at an offset is what this log has there. Pure.

Batches are the same if base offset, last offset and checksum are. Compaction, here or there, leaves fewer
records of a batch and another checksum; then the records are compared that both have.
"""

from __future__ import annotations

from headrace.core.errors import HeadraceError
from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, read_header
from headrace.protocol.records import Record, decode_records


def agrees(ours: memoryview, theirs: memoryview, end_offset: int) -> bool | None:
    """Compares what lies before `end_offset`. None if they have no record in common."""
    own, other = first_batch(ours), first_batch(theirs)
    if own is None or other is None:
        return None
    mine, yours = read_header(own), read_header(other)
    if (mine.base_offset, mine.last_offset, mine.crc) == (yours.base_offset, yours.last_offset, yours.crc):
        return True
    if yours.base_offset >= end_offset:
        return None
    if mine.is_control or yours.is_control:
        return _same_marker(mine, yours)
    try:
        known = _by_offset(own, end_offset)
        found = _by_offset(other, end_offset)
    except HeadraceError:
        return False
    common = known.keys() & found.keys()
    if not common:
        return None
    return all(_same(known[offset], found[offset]) for offset in common)


def _same_marker(mine: BatchHeader, yours: BatchHeader) -> bool | None:
    """Apache Kafka's cleaner writes into a marker when it may be removed, which changes its checksum."""
    if mine.base_offset != yours.base_offset:
        return None
    ends = (mine.is_control, mine.producer_id, mine.producer_epoch)
    return ends == (yours.is_control, yours.producer_id, yours.producer_epoch)


def first_batch(records: memoryview) -> memoryview | None:
    if len(records) < HEADER_SIZE:
        return None
    size = int.from_bytes(records[8:12], "big", signed=True) + LOG_OVERHEAD
    return records[:size] if HEADER_SIZE <= size <= len(records) else None


def _by_offset(batch: memoryview, end_offset: int) -> dict[int, Record]:
    return {record.offset: record for record in decode_records(batch) if record.offset < end_offset}


def _same(one: Record, other: Record) -> bool:
    return (one.key, one.value, one.headers) == (other.key, other.value, other.headers)

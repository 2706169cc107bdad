"""Look-ups by time. The time index leads near the place; the headers of the batches lead to the batch.

Only then is one batch opened, to find the record. A batch whose inside cannot be read answers for itself
with its header: its first offset and its largest timestamp. So a bad inside never stops a look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headrace.core.errors import ClientError
from headrace.core.ports import File
from headrace.log import scan, segments
from headrace.log.segment import Segment
from headrace.protocol.batch import BatchHeader

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


class TimestampOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


def offset_for_timestamp(log: PartitionLog, timestamp: int, limit: int) -> TimestampOffset | None:
    for segment in log.segments:
        if segment.base_offset >= limit:
            return None
        if segment.size and segment.largest_timestamp() >= timestamp:
            found = _first_at_or_after(log, segment, timestamp, limit)
            if found is not None:
                return found
    return None


def _first_at_or_after(
    log: PartitionLog, segment: Segment, timestamp: int, limit: int
) -> TimestampOffset | None:
    first = segment.locate(max(segment.time_floor(timestamp), log.log_start_offset))
    if first is None:
        return None
    file = segment.file()
    for position, header in scan.headers(file, first.position, segment.size):
        if header.base_offset >= limit:
            return None
        if header.max_timestamp >= timestamp and header.last_offset >= log.log_start_offset:
            found = _in_batch(log, file, position, header, timestamp)
            if found is not None and found.offset < limit:
                return found
    return None


def _in_batch(
    log: PartitionLog, file: File, position: int, header: BatchHeader, timestamp: int
) -> TimestampOffset | None:
    start = log.log_start_offset
    if not header.is_log_append_time:
        try:
            for record in segments.records_at(file, position, header):
                if record.timestamp >= timestamp and record.offset >= start:
                    return TimestampOffset(record.offset, record.timestamp, header.leader_epoch)
            return None
        except ClientError:
            pass
    return TimestampOffset(max(header.base_offset, start), header.max_timestamp, header.leader_epoch)


def max_timestamp_offset(log: PartitionLog, limit: int) -> TimestampOffset | None:
    candidates = (segment for segment in log.segments if segment.base_offset < limit and segment.size)
    best = max(candidates, key=Segment.largest_timestamp, default=None)
    if best is None or best.largest_timestamp() < 0:
        return None
    found = _first_at_or_after(log, best, best.largest_timestamp(), limit)
    return _largest_visible(log, limit) if found is None else found


def _largest_visible(log: PartitionLog, limit: int) -> TimestampOffset | None:
    """The slow way, for when the largest timestamp of all lies below the log start or above the limit."""
    best: TimestampOffset | None = None
    for segment in log.segments:
        if segment.base_offset >= limit or not segment.size:
            continue
        for position, header in scan.headers(segment.file(), 0, segment.size):
            if header.last_offset < log.log_start_offset or header.next_offset > limit:
                continue
            if best is None or header.max_timestamp > best.timestamp:
                found = _largest_in_batch(log, segment.file(), position, header)
                if found is not None and (best is None or found.timestamp > best.timestamp):
                    best = found
    return best if best is not None and best.timestamp >= 0 else None


def _largest_in_batch(
    log: PartitionLog, file: File, position: int, header: BatchHeader
) -> TimestampOffset | None:
    try:
        records = segments.records_at(file, position, header)
        visible = [record for record in records if record.offset >= log.log_start_offset]
    except ClientError:
        start = max(header.base_offset, log.log_start_offset)
        return TimestampOffset(start, header.max_timestamp, header.leader_epoch)
    best = max(visible, key=lambda record: record.timestamp, default=None)
    return None if best is None else TimestampOffset(best.offset, best.timestamp, header.leader_epoch)

"""Which segments may go: those that are too old, those that the log is too large by, those before its start.

Nothing above the high watermark is removed. The active segment is only removed when everything in it has
expired; then a new, empty one takes its place first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


def enforce(log: PartitionLog, now_ms: int, high_watermark: int) -> int:
    removed = _remove(log, _before_start(log, high_watermark), now_ms)
    if "delete" in log.config.cleanup_policy:
        removed += _remove(log, _expired(log, now_ms, high_watermark), now_ms)
        removed += _remove(log, _over_size(log, high_watermark), now_ms)
    return removed


def _end_of(log: PartitionLog, place: int) -> int:
    """The offset that follows the segment at `place`."""
    return log.segments[place + 1].base_offset if place + 1 < len(log.segments) else log.end_offset


def _expired(log: PartitionLog, now_ms: int, high_watermark: int) -> int:
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return 0
    count = 0
    for place, segment in enumerate(log.segments):
        if not segment.size or _end_of(log, place) > high_watermark:
            break
        if now_ms - segment.retention_timestamp() <= retention_ms:
            break
        count += 1
    return count


def _over_size(log: PartitionLog, high_watermark: int) -> int:
    retention_bytes = log.config.retention_bytes
    if retention_bytes < 0:
        return 0
    surplus = log.size_bytes - retention_bytes
    count = 0
    for place, segment in enumerate(log.segments[:-1]):
        if surplus < segment.size or _end_of(log, place) > high_watermark:
            break
        surplus -= segment.size
        count += 1
    return count


def _before_start(log: PartitionLog, high_watermark: int) -> int:
    count = 0
    for place in range(len(log.segments) - 1):
        if _end_of(log, place) > min(log.log_start_offset, high_watermark):
            break
        count += 1
    return count


def _remove(log: PartitionLog, count: int, now_ms: int) -> int:
    if count == 0:
        return 0
    if count == len(log.segments):
        log.roll(now_ms)
    start = log.segments[count].base_offset
    if start > log.log_start_offset:
        log.raise_log_start(start)
    log.drop_leading(count, now_ms)
    log.durable_start = max(log.durable_start, log.segments[0].base_offset)
    log.drop_snapshots(before=log.segments[0].base_offset)
    return count

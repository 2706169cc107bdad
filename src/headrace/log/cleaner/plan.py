"""What of a log is dirty, whether it is worth a pass, and what the pass has to know.

Clean is what an earlier pass has covered: up to the checkpointed offset, from which on the dirty part begins.
It ends where nothing may be touched any more: at the last stable offset, at the active segment, at records
that are younger than min.compaction.lag.ms, and at what is not known to be on the disk. Whole segments only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.config.values import LONG_MAX
from headrace.log.cleaner.job import CleaningJob, LastOfProducer, SourceSegment
from headrace.log.segment import Segment
from headrace.log.segment_times import largest_timestamp
from headrace.log.transaction_index import AbortedTransaction
from headrace.protocol.batch import HEADER_SIZE, read_header
from headrace.protocol.compression import Compression

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog

_SMALLEST_IO_BYTES: Final = 64 * 1024


class Limits(NamedTuple):
    """What one worker may use."""

    map_bytes: int
    io_bytes: int
    bytes_per_second: float


class Dirt(NamedTuple):
    first_dirty: int
    end: int
    """The base offset of the first segment that may not be cleaned."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """A record is older than max.compaction.lag.ms."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_worth_a_pass(self, log: PartitionLog) -> bool:
        if not self.dirty_bytes:
            return False
        return self.is_overdue or self.ratio > log.config.min_cleanable_dirty_ratio


def find_dirt(log: PartitionLog, clean_until: int, stable: int, durable: int, now_ms: int) -> Dirt:
    """`stable`: the last stable offset. `durable`: the recovery point as it stands on the disk.

    Recovery walks from there on and takes what it meets for the log as it was written: so nothing beyond it
    may be compacted.
    """
    first_dirty = clean_until
    if not log.log_start_offset <= clean_until <= log.end_offset:
        first_dirty = log.log_start_offset  # it speaks of a log that was cut, or has lost its beginning
    end = _first_untouchable(log, first_dirty, min(stable, durable), now_ms)
    clean_bytes = dirty_bytes = 0
    for segment, ends in _sealed(log):
        if segment.base_offset >= end:
            break
        if ends <= first_dirty:
            clean_bytes += segment.size
        else:
            dirty_bytes += segment.size
    overdue = bool(dirty_bytes) and _is_overdue(log, first_dirty, now_ms)
    return Dirt(min(first_dirty, end), end, clean_bytes, dirty_bytes, overdue)


def _sealed(log: PartitionLog) -> list[tuple[Segment, int]]:
    """Every segment but the active one, with the offset that follows it."""
    return [(log.segments[at], log.segments[at + 1].base_offset) for at in range(len(log.segments) - 1)]


def _first_untouchable(log: PartitionLog, first_dirty: int, bound: int, now_ms: int) -> int:
    lag = log.config.min_compaction_lag_ms
    for segment, ends in _sealed(log):
        if ends > bound:
            return segment.base_offset
        if lag > 0 and ends > first_dirty and largest_timestamp(segment) > now_ms - lag:
            return segment.base_offset
    return log.active_segment.base_offset


def _is_overdue(log: PartitionLog, first_dirty: int, now_ms: int) -> bool:
    lag = log.config.max_compaction_lag_ms
    if lag >= LONG_MAX:
        return False
    for segment, ends in _sealed(log):
        if ends > first_dirty and segment.size:
            first = read_header(segment.unverified().pread(HEADER_SIZE, 0))
            if 0 < first.max_timestamp < now_ms - lag:
                return True
    return False


def segments_before(log: PartitionLog, end: int) -> tuple[Segment, ...]:
    """What a pass goes over: also what is clean, for what is dirty makes some of it void."""
    return tuple(segment for segment, _ in _sealed(log) if segment.base_offset < end)


def make_job(
    log: PartitionLog, dirt: Dirt, sources: tuple[Segment, ...], limits: Limits, now_ms: int
) -> CleaningJob:
    return CleaningJob(
        folder=log.path,
        sources=tuple(SourceSegment(each.base_offset, each.size) for each in sources),
        first_dirty=dirt.first_dirty,
        end=dirt.end,
        now_ms=now_ms,
        delete_retention_ms=log.config.delete_retention_ms,
        segment_bytes=log.config.segment_bytes,
        index_interval_bytes=log.config.index_interval_bytes,
        max_index_entries=log.active_segment.max_index_entries,
        producers={
            entry.producer_id: LastOfProducer(
                entry.epoch, entry.batches[-1].last_offset if entry.batches else -1
            )
            for entry in log.active_producers()
        },
        aborted=_aborted(log),
        levels={
            Compression.GZIP: log.config.compression_gzip_level,
            Compression.LZ4: log.config.compression_lz4_level,
            Compression.ZSTD: log.config.compression_zstd_level,
        },
        map_bytes=limits.map_bytes,
        io_bytes=max(limits.io_bytes, _SMALLEST_IO_BYTES),
        bytes_per_second=limits.bytes_per_second,
    )


def _aborted(log: PartitionLog) -> tuple[AbortedTransaction, ...]:
    """Of all segments, the active one too: a marker may lie far behind the records that it makes void."""
    return tuple(entry for segment in log.segments for entry in segment.transactions.entries())

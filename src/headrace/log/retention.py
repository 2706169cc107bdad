"""Which segments may go: those that are too old, those that the log is too large by, those before its start.

Nothing above the high watermark is removed. The active segment is only removed when everything in it has
expired; then a new, empty one takes its place first.

First the log start moves, on the disk too, then files go: whatever a crash leaves in between is a log that
begins at or before its start. So a log that begins after it has lost something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.log.segment_times import retention_timestamp

if TYPE_CHECKING:
    from headrace.log.durable_log import DurableLog


class RetentionJob:
    """Segments that are to go. `run` may be called from any thread, everything else belongs to the loop."""

    __slots__ = ("_cuts", "_high_watermark", "_log", "_start", "_truncations")

    def __init__(self, log: DurableLog, high_watermark: int) -> None:
        self._log = log
        self._high_watermark = high_watermark
        self._start = log.log_start_offset
        self._truncations = log.truncations
        self._cuts = log.manifest.cuts

    def run(self) -> None:
        """Write the log start down. StorageError if that fails, with the directory offline."""
        log = self._log
        if not log.directory.wholeness.start_before_files:
            return
        try:
            log.manifest.raise_start(self._start, self._cuts)
            log.manifest.save()
        except FileNotFoundError:
            return  # the partition was deleted meanwhile
        except OSError as error:
            raise log.directory.fail(error, f"raise the log start of {log.topic_partition}") from error

    def done(self, now_ms: int) -> int:
        """After `run` returned: remove the files; how many segments."""
        log = self._log
        if log.closed:
            return 0
        if log.truncations != self._truncations:
            if log.durable_start < log.log_start_offset:
                log.directory.note_raised(log)  # the manifest may not have it, and others wait to hear of it
            return 0
        log.note_durable_start(self._start)
        count = _before(log, min(self._start, self._high_watermark))
        if count:
            log.drop_leading(count, now_ms)
            log.folder.drop_snapshots(before=log.segments[0].base_offset)
        return count


def take(log: DurableLog, now_ms: int, high_watermark: int) -> RetentionJob | None:
    """Raise the log start as far as segments may go. None if none may."""
    count = _before(log, min(log.log_start_offset, high_watermark))
    if "delete" in log.config.cleanup_policy:
        count = _expired(log, count, now_ms, high_watermark)
        count = _over_size(log, count, high_watermark)
    if count == len(log.segments) and not log.may_roll(log.end_offset):
        log.mark_unsynced(now_ms)  # a flush makes it possible: the active one goes the next time
        count -= 1
    if count == 0:
        return None
    if count == len(log.segments):
        log.roll(now_ms)
    start = log.segments[count].base_offset
    if start > log.log_start_offset:
        log.raise_log_start(start)
    return RetentionJob(log, high_watermark)


def take_until(log: DurableLog, offset: int) -> RetentionJob | None:
    """Raise the log start past the sealed segments that end at `offset` or before it: they are kept
    elsewhere. None if there are none."""
    count = _before(log, offset)
    if count == 0:
        return None
    start = log.segments[count].base_offset
    if start > log.log_start_offset:
        log.raise_log_start(start)
    return RetentionJob(log, offset)


def enforce(log: DurableLog, now_ms: int, high_watermark: int) -> int:
    job = take(log, now_ms, high_watermark)
    if job is None:
        return 0
    job.run()
    return job.done(now_ms)


def _end_of(log: DurableLog, place: int) -> int:
    """The offset that follows the segment at `place`."""
    return log.segments[place + 1].base_offset if place + 1 < len(log.segments) else log.end_offset


def _before(log: DurableLog, offset: int) -> int:
    """How many segments, without the active one, lie before `offset`."""
    count = 0
    while count < len(log.segments) - 1 and _end_of(log, count) <= offset:
        count += 1
    return count


def _expired(log: DurableLog, count: int, now_ms: int, high_watermark: int) -> int:
    """How many segments may go, if the first `count` of them do and others have expired."""
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return count
    while count < len(log.segments):
        segment = log.segments[count]
        if not segment.size or _end_of(log, count) > high_watermark:
            break
        if now_ms - retention_timestamp(segment, log.directory.disk) <= retention_ms:
            break
        count += 1
    return count


def _over_size(log: DurableLog, count: int, high_watermark: int) -> int:
    """How many segments may go, if the first `count` of them do and the rest is too large."""
    retention_bytes = log.config.retention_bytes
    if retention_bytes < 0:
        return count
    surplus = sum(segment.size for segment in log.segments[count:]) - retention_bytes
    while count < len(log.segments) - 1:
        segment = log.segments[count]
        if surplus < segment.size or _end_of(log, count) > high_watermark:
            break
        surplus -= segment.size
        count += 1
    return count

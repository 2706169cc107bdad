"""Cutting the end off a log. Rare, and durable when it returns.

What was cut must not come back after a power loss behind newer records, so the file is synced after it was
shortened, removed segments are gone from the synced folder, and the recovery point is lowered on the disk
first: it never promises what is no longer there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.log import files, producer_replay, scan
from headrace.log.segment import NEVER

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


def truncate_to(log: PartitionLog, offset: int) -> None:
    if offset >= log.end_offset:
        return
    if offset <= log.log_start_offset or (boundary := _batch_boundary(log, offset)) < log.log_start_offset:
        truncate_fully_and_start_at(log, min(offset, log.log_start_offset))
        return
    log.truncations += 1
    _note_end(log, boundary)
    if boundary < log.recovery_point:
        log.recovery_point = boundary
        log.directory.lower_checkpoints(log.topic_partition, boundary, log.log_start_offset)
    while len(log.segments) > 1 and log.active_segment.base_offset >= boundary:
        log.drop_last()
    active = log.active_segment
    active.largest_timestamp()
    active.truncate_to(boundary)
    if active.roll_at == NEVER:  # it was loaded as a sealed one, or is the cleaner's
        log.resume_clock(active.created_ms)
    log.end_offset = boundary
    log.recovery_point = min(log.recovery_point, boundary)
    log.synced_offset = min(log.synced_offset, boundary)
    log.drop_snapshots(above=log.end_offset)
    log.drop_jumps([jump for jump in log.jumps if jump[1] > boundary])
    log.epochs.truncate_from_end(log.end_offset)
    log.latest_epoch = log.epochs.latest
    producer_replay.rebuild(
        log.directory.disk, log.producers, log.segments, log.path, log.snapshot_offsets, log.end_offset
    )
    _sync_folder(log)


def _batch_boundary(log: PartitionLog, offset: int) -> int:
    """The first offset of the batch that holds `offset`: a batch cannot be cut in two.

    In a gap, as compaction leaves it, the log ends with the batch before: a restart would find the same end.
    """
    segment = next(each for each in reversed(log.segments) if each.base_offset <= offset)
    found = segment.locate(offset) if segment.size else None
    boundary = offset if found is None else min(found.base_offset, offset)
    if boundary == segment.base_offset:
        return boundary
    before = segment.locate(boundary - 1)
    if before is not None and before.base_offset < boundary:
        return boundary
    end = segment.base_offset
    for _, header in scan.headers(segment.file(), 0, segment.size):
        if header.base_offset >= boundary:
            break
        end = header.next_offset
    return end


def _note_end(log: PartitionLog, boundary: int) -> None:
    """If the batch that will be the last lies behind a gap, nothing may be left after it to confirm it."""
    segment = next((each for each in reversed(log.segments) if each.base_offset < boundary), None)
    last = None if segment is None else segment.locate(boundary - 1)
    if segment is None or last is None or last.base_offset == segment.base_offset:
        return
    before = segment.locate(last.base_offset - 1)
    if before is not None and before.base_offset == last.base_offset:
        if (last.base_offset, boundary) not in log.jumps:
            log.note_jump(last.base_offset, boundary, tuple(end for _, end in log.jumps))
        log.directory.disk.sync_dir(log.path)


def truncate_fully_and_start_at(log: PartitionLog, offset: int) -> None:
    log.truncations += 1
    log.recovery_point = log.synced_offset = offset
    log.directory.lower_checkpoints(log.topic_partition, 0, offset)
    while log.segments:
        log.drop_last()
    log.drop_snapshots(above=-1)
    log.drop_jumps(log.jumps)
    log.epochs.clear()
    log.latest_epoch = log.epochs.latest
    log.producers.clear(offset)
    log.end_offset = offset
    log.log_start_offset = log.durable_start = offset
    log.add_segment(offset, 0)
    _sync_folder(log)


def _sync_folder(log: PartitionLog) -> None:
    disk = log.directory.disk
    if log.epochs.unsynced:
        files.sync_path(disk, log.epochs.path)
        log.epochs.unsynced = False
    disk.sync_dir(log.path)

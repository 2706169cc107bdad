"""Logs to be cleaned, and a cleaner that does everything at once."""

from __future__ import annotations

from typing import Any

from headrace.config.topic import TopicConfig
from headrace.core.ports import Disk
from headrace.log.cleaner.job import CleanedGroup, PassEnd
from headrace.log.cleaner.passes import clean
from headrace.log.cleaner.plan import Limits, find_dirt, make_job, segments_before
from headrace.log.cleaner.swap import SegmentSwap
from headrace.log.partition_log import PartitionLog
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, open_at, topic_config

LIMITS = Limits(map_bytes=1 << 20, io_bytes=1 << 16, bytes_per_second=1e308)
Pair = tuple[bytes | None, bytes | None]


def compacted(**changes: Any) -> TopicConfig:
    return topic_config(**{"cleanup_policy": frozenset({"compact"}), "segment_bytes": 1 << 20, **changes})


def new_log(disk: Disk | None = None, **changes: Any) -> PartitionLog:
    return open_at(disk or SimulatedDisk(), "/data", config=compacted(**changes))


def put(log: PartitionLog, *pairs: Pair, epoch: int = 0, timestamp: int = NOW, **fields: Any) -> int:
    """One batch of (key, value), as a leader would have sent it; its first offset."""
    new = [NewRecord(value, key, timestamp + at) for at, (key, value) in enumerate(pairs)]
    return _append(log, new, epoch, fields)


def mark(log: PartitionLog, producer_id: int, *, commit: bool, producer_epoch: int = 0) -> int:
    marker = end_marker(commit=commit, coordinator_epoch=1, timestamp=NOW)
    fields = {"producer_id": producer_id, "producer_epoch": producer_epoch}
    return _append(log, [marker], log.latest_epoch, {**fields, "transactional": True, "control": True})


def _append(log: PartitionLog, new: list[NewRecord], epoch: int, fields: dict[str, Any]) -> int:
    at = log.end_offset
    log.append_as_follower(
        encode_batch(new, base_offset=at, leader_epoch=max(epoch, log.latest_epoch), **fields), now_ms=NOW
    )
    return at


def run_pass(
    log: PartitionLog,
    clean_until: int = 0,
    *,
    now_ms: int = NOW,
    limits: Limits = LIMITS,
    stable: int | None = None,
) -> tuple[list[CleanedGroup], PassEnd]:
    """Flush, and clean everything that may be cleaned."""
    log.flush()
    stable = log.last_stable_offset(log.end_offset) if stable is None else stable
    dirt = find_dirt(log, clean_until, stable, log.recovery_point, now_ms)
    sources = segments_before(log, dirt.end)
    swap = SegmentSwap(log, sources)
    written: list[CleanedGroup] = []
    for step in clean(log.directory.disk, make_job(log, dirt, sources, limits, now_ms), lambda _: None):
        if isinstance(step, PassEnd):
            return written, step
        assert swap.holds(step)
        if step.changed:
            swap.swap(step, now_ms)
        else:
            swap.discard(step)
        written.append(step)
    raise AssertionError("a pass ends with its end")

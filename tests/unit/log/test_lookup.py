"""Look-ups by time, with limits and log starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.log.lookup import TimestampOffset
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from tests.unit.log.material import NOW, append, open_at, topic_config


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Offset n has time NOW + (30, 10, 50, 20, 40)[n]; one record per batch, two batches per segment."""
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(segment_bytes=140, index_interval_bytes=0))
    for epoch, late in enumerate((30, 10, 50, 20, 40)):
        append(log, b"x", timestamp=NOW + late, leader_epoch=epoch)
    assert len(log.segments) == 3
    return log


def test_the_first_record_that_is_late_enough(log: PartitionLog) -> None:
    assert log.offset_for_timestamp(0, 5) == TimestampOffset(0, NOW + 30, 0)
    assert log.offset_for_timestamp(NOW + 30, 5) == TimestampOffset(0, NOW + 30, 0)
    assert log.offset_for_timestamp(NOW + 31, 5) == TimestampOffset(2, NOW + 50, 2)
    assert log.offset_for_timestamp(NOW + 51, 5) is None


def test_nothing_above_the_limit_is_told(log: PartitionLog) -> None:
    assert log.offset_for_timestamp(NOW + 31, 2) is None
    assert log.offset_for_timestamp(NOW + 31, 3) == TimestampOffset(2, NOW + 50, 2)
    assert log.max_timestamp_offset(5) == TimestampOffset(2, NOW + 50, 2)
    assert log.max_timestamp_offset(2) == TimestampOffset(0, NOW + 30, 0)
    assert log.max_timestamp_offset(0) is None


def test_nothing_below_the_log_start_is_told(log: PartitionLog) -> None:
    log.delete_records_before(3)
    assert log.offset_for_timestamp(0, 5) == TimestampOffset(3, NOW + 20, 3)
    assert log.max_timestamp_offset(5) == TimestampOffset(4, NOW + 40, 4)


def test_an_empty_log_has_no_times(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    assert log.offset_for_timestamp(0, 0) is None
    assert log.max_timestamp_offset(0) is None
    append(log, b"x", timestamp=-1)
    assert log.max_timestamp_offset(1) is None


def test_sealed_segments_answer_after_a_restart(log: PartitionLog, tmp_path: Path) -> None:
    log.close()
    again = open_at(OsDisk(), str(tmp_path), config=log.config, clean=True, recovery_point=5)
    assert again.offset_for_timestamp(NOW + 31, 5) == TimestampOffset(2, NOW + 50, 2)
    assert again.max_timestamp_offset(5) == TimestampOffset(2, NOW + 50, 2)
    assert again.end_offset_for_epoch(2) == (2, 3)


def test_jitter_rolls_a_segment_earlier_and_always_the_same_way(tmp_path: Path) -> None:
    config = topic_config(segment_ms=10_000, segment_jitter_ms=5_000)
    deadlines = set()
    for number in range(2):
        log = open_at(OsDisk(), str(tmp_path / str(number)), config=config)
        append(log, b"x", timestamp=NOW)
        deadlines.add(log.active_segment.roll_at)
    (deadline,) = deadlines
    assert NOW + 5_000 < deadline <= NOW + 10_000

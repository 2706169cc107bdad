"""Look-ups by time, with limits and log starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.log.lookup import MAX_OPENED, MAX_WALKED, TimestampOffset
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import check, reseal
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, append, batch_of, open_at, topic_config


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


# --- a look-up runs on the loop, so it may not read the whole log ---


class CountingDisk(SimulatedDisk):
    reads = 0

    def meet_faults(self, operation: str, path: str) -> None:
        self.reads += operation == "pread"
        super().meet_faults(operation, path)


def append_lying(log: PartitionLog, claimed: int, timestamp: int) -> None:
    """A batch whose header says a larger time than any of its records has."""
    batch, _ = batch_of(b"liar", timestamp=timestamp)
    batch[35:43] = claimed.to_bytes(8, "big")
    reseal(batch, 0, len(batch))
    log.append_as_leader(batch, check(batch), leader_epoch=0, now_ms=NOW)


def many_segments(disk: SimulatedDisk, first: int) -> PartitionLog:
    """A hundred segments of ten batches. The times ascend, but for the `first`."""
    log = open_at(disk, "/data", config=topic_config(segment_bytes=715, index_interval_bytes=0))
    append(log, b"1234", timestamp=first)
    for number in range(1, 1000):
        append(log, b"1234", timestamp=NOW + number)
    assert len(log.segments) >= 100
    return log


def test_the_largest_time_of_all_was_deleted() -> None:
    disk = CountingDisk()
    log = many_segments(disk, NOW + 10_000)
    for start, most in ((1, 20), (500, 20), (1000, 0)):
        log.delete_records_before(start)
        disk.reads = 0
        expected = TimestampOffset(999, NOW + 999, 0) if start < 1000 else None
        assert log.max_timestamp_offset(1000) == expected
        assert disk.reads <= most


def test_a_header_that_claims_a_larger_time_costs_one_segment() -> None:
    disk = CountingDisk()
    log = many_segments(disk, NOW)
    log.roll(NOW)
    append_lying(log, NOW + 50_000, NOW + 5)
    log.roll(NOW)
    append(log, b"x", timestamp=NOW + 7)
    disk.reads = 0
    assert log.max_timestamp_offset(log.end_offset) == TimestampOffset(999, NOW + 999, 0)
    assert disk.reads < 40


def test_the_first_of_equal_times_is_told_across_segments() -> None:
    log = open_at(SimulatedDisk(), "/data")
    append(log, b"x", timestamp=NOW + 5)
    log.roll(NOW)
    append_lying(log, NOW + 50_000, NOW + 5)
    append(log, b"x", timestamp=NOW + 5)
    assert log.max_timestamp_offset(3) == TimestampOffset(0, NOW + 5, 0)


def test_only_so_many_batches_are_opened_that_claim_too_much() -> None:
    """The next one is believed, as one is that cannot be read."""
    disk = CountingDisk()
    log = open_at(disk, "/data", config=topic_config(index_interval_bytes=1 << 20))
    for _ in range(100):
        append_lying(log, NOW + 50_000, NOW)
    disk.reads = 0
    assert log.max_timestamp_offset(100) == TimestampOffset(MAX_OPENED, NOW + 50_000, 0)
    assert log.offset_for_timestamp(NOW + 40_000, 100) == TimestampOffset(MAX_OPENED, NOW + 50_000, 0)
    assert disk.reads < 3 * MAX_OPENED


def test_only_so_many_batches_are_looked_at_for_the_largest_time() -> None:
    log = open_at(SimulatedDisk(), "/data", config=topic_config(index_interval_bytes=1 << 20))
    append(log, b"x", timestamp=NOW + 50_000)
    for number in range(MAX_WALKED):
        append(log, b"x", timestamp=NOW + number)
    append(log, b"x", timestamp=NOW + 40_000)
    log.delete_records_before(1)
    assert log.max_timestamp_offset(log.end_offset) == TimestampOffset(MAX_WALKED, NOW + MAX_WALKED - 1, 0)

"""Which segments go, when their files go, and what never goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import CorruptLog, OffsetOutOfRange
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, append, open_at, read_records, topic_config


def log_of(tmp_path: Path, **settings: Any) -> PartitionLog:
    """Three sealed segments with offsets 0, 1 and 2, and an active one with 3; a minute apart."""
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(retention_ms=-1, **settings))
    for number in range(4):
        append(log, b"x" * 100, timestamp=NOW + 60_000 * number)
        if number < 3:
            log.roll(NOW)
    return log


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_by_time_the_largest_timestamp_of_a_segment_counts(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.update_config(topic_config(retention_ms=100_000))
    assert log.enforce_retention(NOW + 100_000, 4) == 0
    assert log.enforce_retention(NOW + 100_001, 4) == 1
    assert (bases(log), log.log_start_offset) == ([1, 2, 3], 1)
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 1, limit=4, min_one=True)


def test_a_young_segment_protects_older_ones_behind_it(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(retention_ms=1000))
    append(log, b"young", timestamp=NOW + 3_000_000)
    log.roll(NOW)
    append(log, b"old", timestamp=NOW)
    assert log.enforce_retention(NOW + 10_000, 2) == 0


def test_when_all_is_old_even_the_active_segment_goes(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.update_config(topic_config(retention_ms=1))
    assert log.enforce_retention(NOW + 10_000_000, 4) == 4
    assert (bases(log), log.log_start_offset, log.end_offset) == ([4], 4, 4)
    assert append(log, b"next").base_offset == 4
    assert log.enforce_retention(NOW, 5) == 0


def test_by_size_whole_segments_go_and_never_the_active_one(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    one = log.segments[0].size
    log.update_config(topic_config(retention_ms=-1, retention_bytes=3 * one + 1))
    assert log.enforce_retention(NOW, 4) == 0
    log.update_config(topic_config(retention_ms=-1, retention_bytes=2 * one))
    assert log.enforce_retention(NOW, 4) == 2
    log.update_config(topic_config(retention_ms=-1, retention_bytes=0))
    assert log.enforce_retention(NOW, 4) == 1
    assert bases(log) == [3]


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.update_config(topic_config(retention_ms=1, retention_bytes=0))
    assert log.enforce_retention(NOW + 10_000_000, 1) == 1
    assert bases(log) == [1, 2, 3]


def test_deleted_records_go_with_their_segments(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    assert log.delete_records_before(2) == 2
    assert log.delete_records_before(1) == 2, "the log start never moves back"
    assert [record.offset for record in read_records(log)] == [2, 3]
    assert bases(log) == [0, 1, 2, 3]
    assert log.enforce_retention(NOW, 4) == 2
    assert bases(log) == [2, 3]
    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(5)


def test_a_compacted_topic_keeps_what_is_old(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.update_config(topic_config(retention_ms=1, retention_bytes=0, cleanup_policy=frozenset({"compact"})))
    assert log.enforce_retention(NOW + 10_000_000, 4) == 0
    log.delete_records_before(1)
    assert log.enforce_retention(NOW + 10_000_000, 4) == 1


def test_files_are_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    log = log_of(tmp_path, file_delete_delay_ms=500)
    log.delete_records_before(1)
    log.enforce_retention(NOW, 4)
    names = {path.name for path in Path(log.path).iterdir()}
    assert f"{0:020d}.log.deleted" in names
    assert f"{0:020d}.index.deleted" in names
    assert f"{0:020d}.log" not in names
    assert log.folder.delete_expired_files(NOW + 499) == 0
    assert log.folder.delete_expired_files(NOW + 500) == 3
    assert not [path for path in Path(log.path).iterdir() if path.name.endswith(".deleted")]


def test_one_snapshot_before_the_start_is_kept(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.delete_records_before(3)
    log.enforce_retention(NOW, 4)
    assert log.folder.snapshot_offsets == [2, 3]
    assert sorted(int(path.stem) for path in Path(log.path).glob("*.snapshot")) == [2, 3]


def test_records_without_timestamps_expire_by_the_time_of_their_file(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(retention_ms=1000))
    append(log, b"x", timestamp=-1)
    written_ms = OsDisk().modified_ms(log.active_segment.path(".log"))
    assert log.enforce_retention(written_ms + 1000, 1) == 0
    assert log.enforce_retention(written_ms + 1001, 1) == 1


@pytest.mark.parametrize("is_flipped", [False, True], ids=["zeroed", "timestamp"])
def test_damage_makes_no_segment_older_than_it_is(is_flipped: bool) -> None:
    """Its indexes were once made again up to the damage, or from a timestamp that was damaged itself: then it
    was removed as if it were as old as that."""
    disk, config = SimulatedDisk(), topic_config(index_interval_bytes=0, retention_ms=100_000)
    log = open_at(disk, "/data", config=config)
    for number in range(4):
        append(log, b"x" * 100, timestamp=NOW + 60_000 * number)
    log.roll(NOW)
    append(log, b"x", timestamp=NOW + 300_000)
    log.close()
    log = open_at(disk, "/data", config=config, clean=True, recovery_point=5)
    sealed = log.segments[0]
    path, last, right = sealed.path(".log"), sealed.position_of(3), disk.content(sealed.path(".log"))
    harmed = bytearray(right)
    if is_flipped:
        harmed[last + 35] ^= 0x80  # of its largest timestamp
    else:
        harmed[last:] = bytes(len(right) - last)
    disk.put(path, bytes(harmed))
    for _ in range(2):
        with pytest.raises(CorruptLog):
            log.enforce_retention(NOW + 270_000, 5)
    disk.put(path, right)
    assert log.enforce_retention(NOW + 270_000, 5) == 0
    assert log.enforce_retention(NOW + 280_001, 5) == 1

"""Appending to a log and reading from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import CorruptBatch, OffsetOutOfRange
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.protocol.records import encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import (
    NOW,
    append,
    batch_of,
    open_at,
    read_bytes,
    read_records,
    records,
    topic_config,
    values_of,
    whole_batches,
)

SMALL = {"segment_bytes": 400, "index_interval_bytes": 100}


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_at(OsDisk(), str(tmp_path))


def small_log(tmp_path: Path, batches: int = 20) -> PartitionLog:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(**SMALL))
    for number in range(batches):
        append(log, b"a%d" % number, b"b%d" % number, timestamp=NOW + 10 * number)
    return log


def test_offsets_and_epoch_are_assigned_in_place(log: PartitionLog) -> None:
    append(log, b"one", b"two", leader_epoch=3)
    result = append(log, b"three", leader_epoch=3)
    assert (result.base_offset, result.last_offset, result.append_time_ms) == (2, 2, -1)
    assert not result.duplicate
    found = whole_batches(read_bytes(log, 0))
    assert [header.base_offset for header, _ in found] == [0, 2]
    assert {header.leader_epoch for header, _ in found} == {3}
    assert values_of(read_records(log)) == [b"one", b"two", b"three"]
    assert log.end_offset == 3
    assert log.latest_epoch == 3


def test_a_read_inside_a_batch_gives_the_whole_batch(log: PartitionLog) -> None:
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    assert [header.base_offset for header, _ in whole_batches(read_bytes(log, 1))] == [0, 3]


def test_a_read_stops_at_the_limit(log: PartitionLog) -> None:
    for value in (b"a", b"b", b"c"):
        append(log, value)
    assert [header.base_offset for header, _ in whole_batches(read_bytes(log, 0, limit=2))] == [0, 1]
    assert read_bytes(log, 2, limit=2) == b""


def test_a_limit_inside_a_batch_leaves_that_batch_out(log: PartitionLog) -> None:
    append(log, b"a")
    append(log, b"b", b"c")
    assert [header.base_offset for header, _ in whole_batches(read_bytes(log, 0, limit=2))] == [0]


def test_the_first_batch_is_whole_or_absent(log: PartitionLog) -> None:
    append(log, b"x" * 1000)
    append(log, b"y")
    first = log.read(0, 10, limit=2, min_one=True)
    assert first.length == 1000 + 61 + 9
    assert log.read(0, 10, limit=2, min_one=False).length == 0
    cut = log.read(0, first.length + 5, limit=2, min_one=False)
    assert cut.length == first.length + 5


def test_offsets_outside_the_log_are_refused(log: PartitionLog) -> None:
    append(log, b"a")
    assert log.read(1, 100, limit=1, min_one=True).length == 0
    for offset in (-1, 2):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100, limit=1, min_one=True)


def test_every_offset_is_found_across_segments(tmp_path: Path) -> None:
    log = small_log(tmp_path)
    assert len(log.segments) > 3
    for offset in range(log.end_offset):
        header, inside = whole_batches(read_bytes(log, offset, 1))[0]
        assert header.base_offset <= offset <= header.last_offset
        assert inside[offset - header.base_offset].value == b"ab"[offset % 2 : offset % 2 + 1] + b"%d" % (
            offset // 2
        )


def test_a_follower_keeps_offsets_and_epochs(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(**SMALL))
    run = encode_batch(records(b"a", b"b"), base_offset=5, leader_epoch=2) + encode_batch(
        records(b"c"), base_offset=9, leader_epoch=4
    )
    cut = run + encode_batch(records(b"d"), base_offset=10, leader_epoch=4)[:-1]
    assert log.append_as_follower(cut) == 10
    assert [record.offset for record in read_records(log)] == [5, 6, 9]
    assert log.epochs.entries == [(2, 5), (4, 9)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"segment_bytes": 400, "index_interval_bytes": 100},
        {"segment_ms": 45},
        {"segment_index_bytes": 48, "index_interval_bytes": 10},
    ],
)
def test_batches_that_come_together_are_kept_as_if_they_came_alone(
    tmp_path: Path, settings: dict[str, int]
) -> None:
    """Whatever makes a segment end: its size, the time, or a full index."""
    alone, together = (
        open_at(OsDisk(), str(tmp_path / name), config=topic_config(**settings))
        for name in ("alone", "together")
    )
    batches = [
        encode_batch(
            records(b"v%d" % number, timestamp=NOW + 10 * number),
            base_offset=number * 3,
            leader_epoch=number // 7,
        )
        for number in range(40)
    ]
    for batch in batches:
        alone.append_as_follower(batch, now_ms=NOW)
    for at in range(0, 40, 5):
        together.append_as_follower(b"".join(batches[at : at + 5]), now_ms=NOW)
    assert [(s.base_offset, s.size, s.index.count) for s in together.segments] == [
        (s.base_offset, s.size, s.index.count) for s in alone.segments
    ]
    assert together.epochs.entries == alone.epochs.entries
    assert together.end_offset == alone.end_offset == 118
    assert list(read_records(together)) == list(read_records(alone))
    assert len(alone.segments) == 1 or settings


def test_a_follower_takes_nothing_of_a_corrupt_run(log: PartitionLog) -> None:
    run = encode_batch(records(b"a")) + encode_batch(records(b"b"), base_offset=1)
    run[-1] ^= 1
    with pytest.raises(CorruptBatch):
        log.append_as_follower(run)
    with pytest.raises(CorruptBatch):
        log.append_as_follower(encode_batch(records(b"a")) + encode_batch(records(b"b"), base_offset=0))
    assert log.end_offset == 0
    assert log.size_bytes == 0


def test_a_segment_is_rolled_by_the_timestamps_of_its_batches(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(segment_ms=1000))
    append(log, b"a", timestamp=NOW)
    append(log, b"b", timestamp=NOW + 1000)
    assert len(log.segments) == 1
    append(log, b"c", timestamp=NOW + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_new_setting_of_segment_ms_holds_for_the_segment_that_is_open(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    append(log, b"a", timestamp=NOW)
    log.update_config(topic_config(segment_ms=1000))
    append(log, b"b", timestamp=NOW + 1001)
    log.update_config(topic_config(segment_ms=5000))
    append(log, b"c", timestamp=NOW + 6001)
    append(log, b"d", timestamp=NOW + 6002)
    assert [segment.base_offset for segment in log.segments] == [0, 1, 3]
    log.close()
    again = open_at(OsDisk(), str(tmp_path), clean=True, recovery_point=4)
    again.update_config(topic_config(segment_ms=1000))
    append(again, b"e", timestamp=NOW + 7003)
    assert again.active_segment.base_offset == 4


def test_a_segment_without_timestamps_is_rolled_by_the_clock(tmp_path: Path) -> None:
    log = open_at(OsDisk(), str(tmp_path), config=topic_config(segment_ms=1000))
    append(log, b"a", timestamp=-1)
    append(log, b"b", timestamp=-1, now_ms=NOW + 1000)
    append(log, b"c", timestamp=-1, now_ms=NOW + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_segment_is_rolled_when_its_index_is_full(tmp_path: Path) -> None:
    log = open_at(
        OsDisk(), str(tmp_path), config=topic_config(index_interval_bytes=0, segment_index_bytes=60)
    )
    for _ in range(12):
        append(log, b"a")
    assert len(log.segments) > 1
    assert all(segment.index.count <= 4 for segment in log.segments)


def test_a_batch_too_far_from_the_base_begins_a_segment(log: PartitionLog) -> None:
    append(log, b"a")
    far = encode_batch(records(b"b"), base_offset=1 << 31, leader_epoch=0)
    log.append_as_follower(far)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    log.append_as_follower(encode_batch(records(b"c"), base_offset=1 << 33, leader_epoch=0))
    assert log.active_segment.base_offset == 1 << 33
    assert [record.offset for record in read_records(log)] == [0, 1 << 31, 1 << 33]


def test_what_is_being_sent_outlives_the_segment(tmp_path: Path) -> None:
    log = small_log(tmp_path)
    found = log.read(0, 1 << 20, limit=log.end_offset, min_one=True)
    before = found.file.pread(found.length, found.position)
    log.delete_records_before(log.end_offset)
    log.enforce_retention(NOW, log.end_offset)
    log.folder.delete_expired_files(NOW + log.config.file_delete_delay_ms)
    assert found.file.pread(found.length, found.position) == before


def test_one_batch_too_many_open_files_lets_the_oldest_go(tmp_path: Path) -> None:
    log = small_log(tmp_path)
    log.directory.max_open = 2
    assert len(read_records(log)) == 40
    append(log, b"more")
    assert values_of(read_records(log))[-1] == b"more"


def test_batch_material_is_checked() -> None:
    batch, header = batch_of(b"a")
    assert header.size == len(batch)


def test_a_segment_that_a_cut_makes_the_last_is_full_of_time_as_any_other() -> None:
    config = topic_config(segment_bytes=400, segment_ms=1000)
    disk = SimulatedDisk()
    log = open_at(disk, "/data", config=config)
    for number in range(12):
        append(log, b"a%d" % number, b"b" * 20, timestamp=NOW + number)
    log.close()
    log = open_at(disk, "/data", config=config, clean=True, recovery_point=log.end_offset)
    log.truncate_to(log.active_segment.base_offset - 2)
    last = log.active_segment
    append(log, b"later", timestamp=NOW + 10_000, now_ms=NOW + 10_000)
    assert log.active_segment is last, (
        "its indexes are not synced, so it waits for a batch that is not either"
    )
    append(log, b"and later", timestamp=NOW + 10_000, now_ms=NOW + 10_000)
    assert log.active_segment is not last

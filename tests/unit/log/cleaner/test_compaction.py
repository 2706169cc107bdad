"""What a pass leaves of a log, and what it leaves alone."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from headrace.core.errors import CorruptLog
from headrace.log import files
from headrace.log.cleaner.plan import Limits
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import CRC_FROM, DELETE_HORIZON_FLAG, BatchHeader, check, reseal
from headrace.protocol.records import NewRecord, Record, encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.cleaner.material import Pair, compacted, mark, new_log, put, run_pass
from tests.unit.log.invariants import check_invariants
from tests.unit.log.material import NOW, open_at, read_bytes, read_records, whole_batches

DAY = 86_400_000


def left(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_records(log)]


def batches(log: PartitionLog) -> list[tuple[BatchHeader, list[Record]]]:
    at, found = log.log_start_offset, []
    while at < log.end_offset:
        found += whole_batches(read_bytes(log, at))
        at = found[-1][0].next_offset
    return found


def test_the_latest_record_of_each_key_stays_with_its_offset() -> None:
    log = new_log()
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"), (b"a", b"3"))
    log.roll(NOW)
    put(log, (b"b", b"active"))
    groups, end = run_pass(log)
    assert left(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"a", b"3"), (5, b"b", b"active")]
    assert end.clean_until == 5
    assert groups[0].read_records == 5
    assert groups[0].kept_records == 3
    check_invariants(log)


def test_headers_keep_offsets_producers_and_epochs() -> None:
    log = new_log()
    put(log, (b"a", b"1"), (b"b", b"1"), producer_id=7, producer_epoch=2, base_sequence=40)
    put(log, (b"a", b"2"), epoch=3)
    log.roll(NOW)
    put(log, (b"z", b""), producer_id=7, producer_epoch=2, base_sequence=42)
    before = [header for header, _ in batches(log)]
    run_pass(log)
    after = [header for header, _ in batches(log)]
    assert [(h.base_offset, h.last_offset, h.leader_epoch) for h in after] == [
        (0, 1, 0),
        (2, 2, 3),
        (3, 3, 3),
    ]
    assert after[0][9:12] == before[0][9:12]
    assert after[0].record_count == 1


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_compression_is_kept(codec: int) -> None:
    log = new_log()
    put(log, (b"a", b"1" * 300), (b"b", b"2" * 300), compression=codec)
    put(log, (b"a", b"3" * 300), (b"c", b"4" * 300), compression=codec)
    log.roll(NOW)
    run_pass(log)
    assert [key for _, key, _ in left(log)] == [b"b", b"a", b"c"]
    assert {header.compression for header, _ in batches(log)} == {codec}


def test_an_emptied_batch_that_holds_a_producers_last_sequence_stays_empty() -> None:
    log = new_log()
    put(log, (b"a", b"1"), (b"b", b"1"), producer_id=7, producer_epoch=0, base_sequence=5)
    put(log, (b"a", b"2"), (b"b", b"2"))
    put(log, (b"x", b""))
    log.roll(NOW)
    run_pass(log)
    first = batches(log)[0]
    assert first[1] == []
    assert first[0].record_count == 0
    assert (first[0].producer_id, first[0].base_sequence, first[0].last_sequence) == (7, 5, 6)
    assert log.directory.disk.exists(log.segments[0].path(files.LOG))
    again = open_at(log.directory.disk, "/data", config=log.config, recovery_point=log.recovery_point)
    entry = again.producers.get(7)
    assert entry is not None
    assert entry.last_sequence == 6


def test_an_emptied_batch_of_a_forgotten_producer_goes() -> None:
    log = new_log()
    put(log, (b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, (b"a", b"2"))
    log.roll(NOW)
    log.expire_producers(NOW + DAY, 0, 1)
    log.expire_producers(NOW + DAY, 1, 1)
    run_pass(log)
    assert [header.base_offset for header, _ in batches(log)] == [1]


def test_the_last_batch_of_a_group_stays_so_that_the_segment_reaches_the_next() -> None:
    log = new_log()
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(NOW)
    put(log, (b"a", b"3"))
    log.roll(NOW)
    run_pass(log)
    put(log, (b"a", b"4"))
    log.roll(NOW)
    run_pass(log, 3)
    found = batches(log)
    assert [(header.base_offset, len(inside)) for header, inside in found] == [(3, 1)]
    assert log.segments[0].base_offset == 0


def test_small_segments_become_one() -> None:
    log = new_log(segment_bytes=2000)
    for number in range(30):
        put(log, (b"k%d" % (number % 10), bytes(150)))
        if number % 3 == 2:
            log.roll(NOW)
    count = len(log.segments)
    run_pass(log)
    assert len(log.segments) < count
    assert [offset for offset, _, _ in left(log)] == list(range(20, 30))
    for segment in log.segments[:-1]:
        assert segment.size <= 3000  # half of a segment, and one that was taken whole
    check_invariants(log)


def test_full_segments_of_which_nothing_is_left_do_not_become_as_many_empty_batches() -> None:
    log = new_log(segment_bytes=1000)
    for number in range(60):
        put(log, (b"k%d" % (number % 3), bytes(250)))
    log.roll(NOW)
    assert len(log.segments) > 15
    run_pass(log)
    assert [len(inside) for _, inside in batches(log)] == [1, 1, 1]
    assert len(log.segments) == 2


def test_a_tombstone_gets_a_horizon_and_goes_when_it_has_passed() -> None:
    log = new_log()
    put(log, (b"a", b"1"), (b"keep", b"1"))
    put(log, (b"a", None), (b"b", b"1"))
    put(log, (b"end", b""))
    log.roll(NOW)
    run_pass(log)
    assert left(log) == [(1, b"keep", b"1"), (2, b"a", None), (3, b"b", b"1"), (4, b"end", b"")]
    header, inside = batches(log)[1]
    assert header.attributes & DELETE_HORIZON_FLAG
    assert header.base_timestamp == NOW + DAY
    assert [record.timestamp for record in inside] == [NOW, NOW + 1]
    run_pass(log, 5, now_ms=NOW + DAY - 1)
    assert (2, b"a", None) in left(log)
    run_pass(log, 5, now_ms=NOW + DAY)
    assert left(log) == [(1, b"keep", b"1"), (3, b"b", b"1"), (4, b"end", b"")]
    found = log.offset_for_timestamp(NOW + 1, log.end_offset)
    assert found is not None
    assert found.offset == 1


def test_a_later_value_takes_the_place_of_a_tombstone() -> None:
    log = new_log()
    put(log, (b"a", None))
    put(log, (b"a", b"2"))
    log.roll(NOW)
    run_pass(log)
    assert left(log) == [(1, b"a", b"2")]


def test_records_without_a_key_go_as_in_kafka() -> None:
    log = new_log()
    put(log, (None, b"1"), (b"a", b"1"))
    put(log, (b"b", b""))
    log.roll(NOW)
    run_pass(log)
    assert left(log) == [(1, b"a", b"1"), (2, b"b", b"")]


def test_nothing_above_the_stable_offset_is_touched() -> None:
    log = new_log()
    for value in range(6):
        put(log, (b"a", b"%d" % value))
        log.roll(NOW)
    run_pass(log, stable=3)
    assert [offset for offset, _, _ in left(log)] == [2, 3, 4, 5]


def test_young_records_are_left_alone() -> None:
    log = new_log(min_compaction_lag_ms=1000)
    put(log, (b"a", b"1"), timestamp=NOW - 5000)
    put(log, (b"a", b"2"), timestamp=NOW - 4000)
    log.roll(NOW)
    put(log, (b"a", b"3"), timestamp=NOW - 10)
    log.roll(NOW)
    run_pass(log)
    assert [offset for offset, _, _ in left(log)] == [1, 2]


def test_a_full_map_takes_several_passes() -> None:
    log = new_log()
    for number in range(60):
        put(log, (b"key-%03d" % (number % 20), b"%d" % number))
    log.roll(NOW)
    small = Limits(map_bytes=2500, io_bytes=1, bytes_per_second=1e308)
    _, end = run_pass(log, limits=small)
    assert 0 < end.clean_until < 60
    passes = 1
    while end.clean_until < 60:
        _, end = run_pass(log, end.clean_until, limits=small)
        passes += 1
        check_invariants(log)
    assert passes > 2
    assert [offset for offset, _, _ in left(log)] == list(range(40, 60))


def test_long_keys_are_told_apart() -> None:
    log = new_log()
    put(log, (b"x" * 100 + b"1", b"1"), (b"x" * 100 + b"2", b"1"))
    put(log, (b"x" * 100 + b"1", b"2"))
    log.roll(NOW)
    run_pass(log)
    assert [offset for offset, _, _ in left(log)] == [1, 2]


def test_a_batch_that_cannot_be_read_stays_as_it_is() -> None:
    log = new_log()
    batch_at = put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"), (b"b", b"2"))
    log.roll(NOW)
    segment = log.segments[0]
    raw = bytearray(segment.file().pread(segment.size, 0))
    size = int.from_bytes(raw[8:12], "big") + 12
    raw[61] = 0x7F  # the length of the first record
    reseal(raw, 0, size)
    segment.file().pwrite(raw, 0)
    groups, _ = run_pass(log)
    assert groups[0].left_as_they_are == (batch_at,)
    kept = read_bytes(log, 0)
    assert kept[:size] == raw[:size]


@pytest.mark.parametrize("byte", [CRC_FROM + 45, 71], ids=["in a record", "in an offset"])
def test_damage_ends_the_pass_with_the_files_as_they_are(byte: int) -> None:
    log = new_log()
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(NOW)
    disk = log.directory.disk
    assert isinstance(disk, SimulatedDisk)
    log.flush()
    disk.flip(log.segments[0].path(files.LOG), byte * 8)
    before = disk.files("/data")
    with pytest.raises(CorruptLog, match="offset"):
        run_pass(log)
    assert [path for path in disk.files("/data") if not path.endswith(files.CLEANED)] == before


@pytest.mark.parametrize(
    ("transactional", "byte"), [(False, 60), (True, 50)], ids=["number of records", "producer"]
)
def test_a_flipped_bit_does_not_make_a_batch_worthless(transactional: bool, byte: int) -> None:
    """As one without records, or as one of another producer, which was aborted, it would be dropped."""
    log = new_log()
    fields = {"producer_id": 1000, "producer_epoch": 0, "transactional": True} if transactional else {}
    put(log, (b"a", b"bad"), producer_id=1001, producer_epoch=0, base_sequence=0, transactional=True)
    kept = put(log, (b"k", b"the only one"), **fields, base_sequence=0 if transactional else -1)
    if transactional:
        mark(log, 1000, commit=True)
    mark(log, 1001, commit=False)
    log.roll(NOW)
    segment, disk = log.segments[0], log.directory.disk
    assert isinstance(disk, SimulatedDisk)
    found = segment.locate(kept)
    assert found is not None
    disk.flip(segment.path(files.LOG), (found.position + byte) * 8)
    with pytest.raises(CorruptLog, match="offset"):
        run_pass(log)
    assert log.segments[0] is segment


def test_a_flipped_bit_in_a_marker_is_found_before_anything_is_swapped() -> None:
    """It would end another producer's transaction, and what that one aborted would count as the latest."""
    log = new_log()
    put(log, (b"k", b"committed"))
    for number in range(4):
        put(log, (b"z%d" % number, bytes(50)))
    log.roll(NOW)
    for producer in (1000, 1001):
        begin(log, producer, (b"%d" % producer, b"x"))
    marker = mark(log, 1000, commit=False)
    put(log, (b"k", b"aborted"), producer_id=1001, producer_epoch=0, base_sequence=1, transactional=True)
    mark(log, 1001, commit=False)
    log.roll(NOW)
    first, disk = log.segments[0], log.directory.disk
    assert isinstance(disk, SimulatedDisk)
    found = log.segments[1].locate(marker)
    assert found is not None
    disk.flip(log.segments[1].path(files.LOG), (found.position + 50) * 8)
    log.update_config(replace(log.config, segment_bytes=130))
    with pytest.raises(CorruptLog, match="offset"):
        run_pass(log)
    assert log.segments[0] is first


def test_tombstones_may_be_kept_for_ever() -> None:
    log = new_log(delete_retention_ms=2**63 - 1)
    put(log, (b"k", b"1"))
    put(log, (b"k", None))
    log.roll(NOW)
    for now_ms in (NOW, NOW + 10_000 * DAY):
        run_pass(log, 0, now_ms=now_ms)
    assert left(log) == [(1, b"k", None)]


def test_a_batch_with_times_that_no_header_can_say_is_cleaned_all_the_same() -> None:
    log = new_log()
    batch = encode_batch([NewRecord(b"1", b"a", NOW), NewRecord(b"1", b"b", NOW + 1)])
    struct.pack_into(">qq", batch, 27, 2**63 - 1, NOW)
    reseal(batch, 0, len(batch))
    log.append_as_leader(batch, check(batch), leader_epoch=0, now_ms=NOW)
    put(log, (b"a", b"2"))
    log.roll(NOW)
    run_pass(log)
    assert [header.record_count for header, _ in batches(log)] == [1, 1]


def test_a_segment_that_would_not_change_is_not_swapped() -> None:
    log = new_log()
    put(log, (b"a", b"1"), (b"b", b"1"))
    log.roll(NOW)
    segment = log.segments[0]
    groups, end = run_pass(log)
    assert not groups[0].changed
    assert end.clean_until == 2
    assert log.segments[0] is segment
    assert not [path for path in log.directory.disk.list(log.path) if path.endswith(files.CLEANED)]


# --- transactions ---


def begin(log: PartitionLog, producer: int, *pairs: Pair, sequence: int = 0) -> None:
    put(log, *pairs, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True)


def test_aborted_records_go_and_their_marker_later() -> None:
    log = new_log()
    put(log, (b"a", b"good"))
    begin(log, 1, (b"a", b"bad"), (b"b", b"bad"))
    mark(log, 1, commit=False)
    begin(log, 1, (b"c", b"good"), sequence=2)
    mark(log, 1, commit=True)
    log.roll(NOW)
    put(log, (b"z", b""))
    begin(log, 1, (b"y", b""), sequence=3)
    mark(log, 1, commit=True)
    run_pass(log)
    data = [(h.base_offset, h.is_control, len(inside)) for h, inside in batches(log)]
    assert data == [
        (0, False, 1),
        (3, True, 1),
        (4, False, 1),
        (5, True, 1),
        (6, False, 1),
        (7, False, 1),
        (8, True, 1),
    ]
    assert [entry.first_offset for entry in log.segments[0].transactions.entries()] == [1]
    run_pass(log, 6)  # nothing of it is left: the marker gets its horizon, the index forgets it
    assert log.segments[0].transactions.entries() == []
    marker = batches(log)[1][0]
    assert marker.attributes & DELETE_HORIZON_FLAG
    assert marker.base_timestamp == NOW + DAY
    run_pass(log, 6, now_ms=NOW + DAY)
    assert [h.base_offset for h, _ in batches(log)] == [0, 4, 5, 6, 7, 8]


def test_a_commit_marker_goes_after_its_last_record() -> None:
    log = new_log()
    begin(log, 1, (b"a", b"1"))
    mark(log, 1, commit=True)
    put(log, (b"a", b"2"))
    log.roll(NOW)
    begin(log, 1, (b"y", b""), sequence=1)
    mark(log, 1, commit=True)
    run_pass(log)
    assert [h.base_offset for h, _ in batches(log)] == [1, 2, 3, 4]
    run_pass(log, 3)
    run_pass(log, 3, now_ms=NOW + DAY)
    assert [h.base_offset for h, _ in batches(log)] == [2, 3, 4]


def test_a_marker_that_is_the_last_word_of_its_producer_stays() -> None:
    """Whoever rebuilds the producers from this log must find its epoch, and that of the coordinator."""
    log = new_log()
    mark(log, 5, commit=False, producer_epoch=3)
    put(log, (b"a", b"2"))
    log.roll(NOW)
    for now_ms in (NOW, NOW, NOW + DAY, NOW + 2 * DAY):
        run_pass(log, 0, now_ms=now_ms)
    first = batches(log)[0]
    assert first[0].is_control
    assert len(first[1]) == 1
    again = open_at(log.directory.disk, "/data", config=compacted())
    assert [(each.producer_id, each.epoch) for each in again.producers.snapshot()] == [(5, 3)]


def test_the_records_of_an_open_transaction_are_not_touched() -> None:
    log = new_log()
    begin(log, 1, (b"a", b"1"))
    log.roll(NOW)
    put(log, (b"a", b"2"))
    log.roll(NOW)
    groups, end = run_pass(log)
    assert groups == []
    assert end.clean_until == 0
    assert len(left(log)) == 2


def test_an_aborted_transaction_whose_marker_lies_far_behind() -> None:
    log = new_log()
    begin(log, 1, (b"a", b"bad"))
    put(log, (b"b", b"good"))
    log.roll(NOW)
    mark(log, 1, commit=False)
    put(log, (b"a", b"after"))
    run_pass(log)
    assert left_data(log) == [(1, b"b", b"good"), (3, b"a", b"after")]
    assert log.segments[1].transactions.entries()[0].first_offset == 0


def left_data(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [
        (record.offset, record.key, record.value)
        for header, inside in batches(log)
        if not header.is_control
        for record in inside
    ]


def test_recovery_takes_a_cleaned_log_as_it_is() -> None:
    disk = SimulatedDisk()
    log = new_log(disk, segment_bytes=3000)
    for number in range(40):
        put(log, (b"k%d" % (number % 7), bytes(100)), epoch=number // 10)
        if number % 4 == 3:
            log.roll(NOW)
    run_pass(log)
    expected, epochs = left(log), list(log.epochs.entries)
    for recovery_point in (log.recovery_point, 0):
        disk.kill()
        again = open_at(disk, "/data", config=compacted(segment_bytes=3000), recovery_point=recovery_point)
        assert left(again) == expected
        assert again.epochs.entries == epochs
        assert again.end_offset == 40
        check_invariants(again)

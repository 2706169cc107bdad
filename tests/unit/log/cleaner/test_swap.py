"""A swap that is interrupted anywhere is finished, or undone, by the next start."""

from __future__ import annotations

import pytest

from headrace.core.errors import CorruptLog
from headrace.log import files, leftovers
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.cleaner.material import compacted, mark, new_log, put, run_pass
from tests.unit.log.fused_disk import FusedDisk, PowerLoss
from tests.unit.log.material import NOW, open_at, read_records

FOLDER = "/data/orders-0"


def two_segments(disk: SimulatedDisk) -> list[tuple[int, bytes | None]]:
    """A log with aborted records in its first segment; what must be left of it."""
    log = new_log(disk)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"x", b"bad"), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    mark(log, 1, commit=False)
    log.roll(NOW)
    put(log, (b"a", b"2"), (b"c", b"2"))
    put(log, (b"y", b"new"), producer_id=1, producer_epoch=0, base_sequence=1)
    log.roll(NOW)
    log.flush()
    return [(1, b"1"), (4, b"2"), (5, b"2"), (6, b"new")]


@pytest.mark.parametrize("keep", [1.0, 0.0, 0.5])
def test_every_step_of_a_pass_can_be_the_last(keep: float) -> None:
    finished = False
    fuse = 0
    while not finished:
        disk = FusedDisk(fuse)
        expected = two_segments(disk)
        log = open_at(disk, "/data", config=compacted(), recovery_point=7)
        disk.fuse = fuse
        try:
            run_pass(log)
            finished = True
        except PowerLoss:
            fuse += 1
        disk.fuse = -1
        disk.crash(keep)
        again = open_at(disk, "/data", config=compacted(), recovery_point=7)
        served = [
            (record.offset, record.value) for record in read_records(again) if record.key != b"\0\0\0\0"
        ]
        assert [item for item in served if item in expected] == expected
        assert again.end_offset == 7
        names = disk.list(FOLDER)
        assert not [name for name in names if name.endswith((files.CLEANED, files.SWAP, files.DELETED))]
        aborted = [entry for segment in again.segments for entry in segment.transactions.entries()]
        if any(offset == 2 for offset, _ in served):
            assert [entry.first_offset for entry in aborted] == [2], "aborted records without their entry"
        assert [entry.producer_id for entry in again.active_producers()] == [1]
    assert fuse > 30


def test_a_damaged_swap_whose_sources_are_there_is_dropped() -> None:
    disk = SimulatedDisk()
    two_segments(disk)
    log = open_at(disk, "/data", config=compacted(), recovery_point=7)
    before = [record.offset for record in read_records(log)]
    swap = disk.open(f"{FOLDER}/{files.numbered(0)}{files.LOG}{files.SWAP}", create=True)
    swap.pwrite(b"nothing that is a batch" * 10, 0)
    again = open_at(disk, "/data", config=compacted(), recovery_point=7)
    assert [record.offset for record in read_records(again)] == before


def test_a_damaged_swap_whose_sources_are_gone_is_not_deleted_in_silence() -> None:
    disk = SimulatedDisk()
    two_segments(disk)
    for suffix in files.SEGMENT_SUFFIXES:
        leftovers.remove(disk, f"{FOLDER}/{files.numbered(0)}{suffix}")
    swap = disk.open(f"{FOLDER}/{files.numbered(0)}{files.LOG}{files.SWAP}", create=True)
    swap.pwrite(b"nothing that is a batch" * 10, 0)
    with pytest.raises(CorruptLog):
        open_at(disk, "/data", config=compacted(), recovery_point=7)
    assert disk.size(f"{FOLDER}/{files.numbered(0)}{files.LOG}") == 230


def test_indexes_of_a_swap_that_was_not_decided_go() -> None:
    disk = SimulatedDisk()
    two_segments(disk)
    disk.open(f"{FOLDER}/{files.numbered(0)}{files.TXN_INDEX}{files.SWAP}", create=True)
    log = open_at(disk, "/data", config=compacted(), recovery_point=7)
    assert [entry.first_offset for entry in log.segments[0].transactions.entries()] == [2]
    assert not disk.exists(f"{FOLDER}/{files.numbered(0)}{files.TXN_INDEX}{files.SWAP}")


def test_snapshots_inside_a_new_segment_go() -> None:
    log = new_log()
    for number in range(4):
        put(log, (b"a", b"%d" % number), producer_id=1, producer_epoch=0, base_sequence=number)
        log.roll(NOW)
    assert log.folder.snapshot_offsets == [1, 2, 3, 4]
    run_pass(log)
    assert log.folder.snapshot_offsets == [4]
    assert [name for name in log.directory.disk.list(log.path) if name.endswith(files.SNAPSHOT)] == [
        files.numbered(4) + files.SNAPSHOT
    ]

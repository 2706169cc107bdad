"""The last batch of a log behind a gap, as a follower of a compacted log has it, after a crash."""

from __future__ import annotations

from contextlib import suppress

import pytest

from headrace.log.partition_log import PartitionLog
from headrace.protocol.records import encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.fused_disk import FusedDisk, PowerLoss
from tests.unit.log.material import NOW, PARTITION, open_at, records

FOLDER = f"/data/{PARTITION}"


def run(*bases: int) -> bytes:
    """Batches of five records each."""
    return b"".join(encode_batch(records(*[b"x"] * 5), base_offset=base, leader_epoch=0) for base in bases)


def copied(disk: SimulatedDisk, *runs: bytes, flushed: bool = False) -> PartitionLog:
    log = open_at(disk, "/data")
    for each in runs:
        log.append_as_follower(each, now_ms=NOW)
        if flushed:
            log.flush()
    return log


def reopened(disk: SimulatedDisk) -> PartitionLog:
    """With the recovery point that was written when the log was empty."""
    return open_at(disk, "/data", recovery_point=0)


def notes(disk: SimulatedDisk) -> list[str]:
    return [name for name in disk.list(FOLDER) if name.endswith(".jump")]


@pytest.mark.parametrize("runs", [(run(0, 20),), (run(0), run(20)), (run(0, 20, 40),), (run(0), run(20, 40))])
@pytest.mark.parametrize("flushed", [False, True])
def test_a_killed_follower_keeps_a_last_batch_behind_a_gap(runs: tuple[bytes, ...], flushed: bool) -> None:
    disk = SimulatedDisk()
    log = copied(disk, *runs, flushed=flushed)
    disk.kill()
    assert reopened(disk).end_offset == log.end_offset


def test_what_was_synced_behind_a_gap_outlives_a_power_cut() -> None:
    disk = SimulatedDisk()
    copied(disk, run(0), run(20), flushed=True)
    disk.crash(keep=0.0)
    again = reopened(disk)
    assert again.end_offset == 25
    again.append_as_follower(run(40), now_ms=NOW)
    disk.crash(keep=0.0)
    assert reopened(disk).end_offset == 25


def test_what_is_synced_while_more_is_appended_outlives_a_power_cut() -> None:
    disk = SimulatedDisk()
    log = copied(disk, run(0, 20))
    job = log.take_flush()
    assert job is not None
    job.run()
    log.append_as_follower(run(40), now_ms=NOW)
    job.done()
    log.append_as_follower(run(60), now_ms=NOW)
    disk.crash(keep=0.0)
    assert reopened(disk).end_offset == 25


@pytest.mark.parametrize("fuse", range(6))
def test_a_follower_that_is_killed_while_it_appends_keeps_what_it_had(fuse: int) -> None:
    disk = FusedDisk()
    log = copied(disk, run(0), run(20))
    disk.fuse = fuse
    with suppress(PowerLoss):
        log.append_as_follower(run(40), now_ms=NOW)
    disk.fuse = -1
    disk.kill()
    assert reopened(disk).end_offset in (25, 45)


@pytest.mark.parametrize("recovery_point", [0, 25])
def test_a_torn_batch_behind_one_that_was_synced_does_not_put_it_in_doubt(recovery_point: int) -> None:
    """Its checksum is right, but the sector with its offset was never written: it falls back to 0."""
    disk = SimulatedDisk()
    log = copied(disk, run(0, 20), flushed=True)
    at = log.active_segment.size
    log.append_as_follower(run(25), now_ms=NOW)
    disk.kill()
    disk.open(f"{FOLDER}/00000000000000000000.log").pwrite(bytes(8), at)
    assert open_at(disk, "/data", recovery_point=recovery_point).end_offset == 25


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("bit", range(5))
def test_a_base_offset_that_nobody_confirms_is_still_cut_off(bit: int, flushed: bool) -> None:
    disk = SimulatedDisk()
    log = copied(disk, run(0, 20), flushed=flushed)
    disk.kill()
    disk.flip(f"{FOLDER}/00000000000000000000.log", 8 * (log.active_segment.size // 2 + 7) + bit)
    assert reopened(disk).end_offset == 5


def test_a_log_that_is_cut_behind_a_gap_keeps_its_end() -> None:
    disk = SimulatedDisk()
    log = copied(disk, run(0, 20, 25), run(40), flushed=True)
    log.truncate_to(25)
    assert notes(disk) == ["00000000000000000020-00000000000000000025.jump"]
    disk.crash(keep=0.0)
    assert reopened(disk).end_offset == 25


def test_a_log_that_is_cut_between_segments_keeps_its_end() -> None:
    disk = SimulatedDisk()
    log = copied(disk, run(0, 20))
    log.roll(NOW)
    log.append_as_follower(run(40), now_ms=NOW)
    log.flush()
    log.truncate_to(25)
    disk.crash(keep=0.0)
    assert reopened(disk).end_offset == 25


def test_a_log_that_is_cut_elsewhere_notes_nothing() -> None:
    disk = SimulatedDisk()
    log = copied(disk, run(0, 20, 25, 40))
    log.truncate_to(40)
    assert (log.end_offset, notes(disk)) == (30, [])
    log.truncate_to(3)
    assert (log.end_offset, notes(disk)) == (0, [])


def test_few_notes_are_kept() -> None:
    disk = SimulatedDisk()
    log = copied(disk, run(0))
    assert notes(disk) == []
    for base in range(20, 2000, 20):
        log.append_as_follower(run(base), now_ms=NOW)
        if base % 200 == 0:
            log.flush()
        assert len(notes(disk)) <= 3
    log.append_as_follower(run(log.end_offset), now_ms=NOW)
    end = log.end_offset
    disk.kill()
    assert reopened(disk).end_offset == end
    again = open_at(disk, "/data", recovery_point=end)
    assert (again.end_offset, notes(disk)) == (end, [])


def test_a_log_that_begins_anew_has_no_notes() -> None:
    disk = SimulatedDisk()
    log = copied(disk, run(0, 20))
    log.truncate_fully_and_start_at(100)
    assert notes(disk) == []
    log.truncate_fully_and_start_at(90)
    log.append_as_follower(run(90), now_ms=NOW)
    assert notes(disk) == []

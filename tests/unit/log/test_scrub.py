"""Reading sealed segments to find damage: a piece at a time, and without a trace in the page cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.log import scrub
from headrace.log.os_disk import OsDisk
from headrace.log.read_ahead import ReadAhead
from headrace.log.scrub import Checkpoint, Cursor, Round, SegmentScrub
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, append, open_at, topic_config
from tests.unit.network import cold_files

ROOT = "/data"
LARGE = topic_config(segment_bytes=3_000_000)


def run(job: SegmentScrub) -> list[int]:
    pieces = []
    while job.holds and not job.is_over:
        pieces.append(job.run())
    job.close()
    return pieces


def test_a_segment_is_read_in_pieces() -> None:
    log = open_at(SimulatedDisk(), ROOT, config=LARGE)
    for _ in range(40):
        append(log, os.urandom(100_000))
    job = SegmentScrub(log, log.segments[0])
    pieces = run(job)
    assert len(pieces) > 1
    assert sum(pieces) == log.segments[0].size
    assert job.fault is None


def test_damage_ends_it_and_is_named() -> None:
    disk = SimulatedDisk()
    log = open_at(disk, ROOT, config=LARGE)
    for _ in range(40):
        append(log, bytes(100_000))
    found = log.segments[0].locate(12)
    assert found is not None
    disk.open(log.segments[0].path(".log")).pwrite(b"x", found.position + 5000)
    job = SegmentScrub(log, log.segments[0])
    run(job)
    assert job.fault is not None
    assert job.fault.position == found.position


@pytest.mark.parametrize("how", ["deleted", "truncated", "closed"])
def test_a_log_that_changes_meanwhile_ends_it(how: str) -> None:
    log = open_at(SimulatedDisk(), ROOT, config=topic_config(segment_bytes=3_000_000, retention_bytes=1))
    for _ in range(80):
        append(log, bytes(100_000))
    job = SegmentScrub(log, log.segments[0])
    job.run()
    if how == "deleted":
        log.enforce_retention(NOW, log.end_offset)
    elif how == "truncated":
        log.truncate_to(70)
    else:
        log.close()
    assert not job.holds


def test_what_was_cold_is_cold_again_and_what_was_in_memory_stays(tmp_path: Path) -> None:
    content = os.urandom(2_000_000)
    path = cold_files.write(tmp_path, content)
    file = OsDisk().open(str(path))
    cold_files.drop_pages(tmp_path)
    assert file.pread_passing(1_000_000, 0) == content[:1_000_000]
    assert not file.is_resident(0, 1_000_000)
    file.pread(1_000_000, 0)
    assert file.pread_passing(1_000_000, 0) == content[:1_000_000]
    assert file.is_resident(0, 1_000_000)
    file.close()


@pytest.mark.parametrize(
    "checkpoint", [scrub.NEVER, Checkpoint(5, 0, Cursor("a.b", 3, 77)), Checkpoint(5, 9, None)]
)
def test_how_far_it_is_survives(checkpoint: Checkpoint) -> None:
    disk = SimulatedDisk()
    disk.make_dirs(ROOT)
    scrub.save_checkpoint(disk, ROOT, checkpoint)
    assert scrub.load_checkpoint(disk, ROOT) == checkpoint


@pytest.mark.parametrize("content", [b"", b"1\n2\n3\n4\n", b"0\nx\n", b"\xff\xfe", b"0\n1\n2\na b c\n"])
def test_a_broken_checkpoint_is_as_good_as_none(content: bytes) -> None:
    assert Checkpoint.parse(content) == scrub.NEVER


def test_a_round_is_measured_by_bytes_whatever_becomes_of_a_log() -> None:
    told = Round(1000)
    assert told.share == 0
    told.note(100)
    assert told.share == 0.1
    told.end_log(600)  # it was cut meanwhile: there was less to read
    assert told.share == 0.6
    told.note(900)  # it grew meanwhile
    assert told.share == 1
    told.end_log(400)
    assert told.share == 1
    assert Round(0).share == 0


def test_a_leader_epoch_that_was_changed_is_damage_though_no_checksum_covers_it() -> None:
    disk = SimulatedDisk()
    log = open_at(disk, ROOT, config=topic_config(segment_bytes=3000))
    for number in range(40):
        append(log, bytes(200), leader_epoch=number // 10)
    assert run(whole := SegmentScrub(log, log.segments[1]))
    assert whole.fault is None
    found = log.segments[1].locate(log.segments[1].base_offset + 3)
    assert found is not None
    disk.flip(log.segments[1].path(".log"), 8 * (found.position + 15))
    run(job := SegmentScrub(log, log.segments[1]))
    assert job.fault is not None
    assert job.fault.position == found.position
    assert "leader epoch" in job.fault.reason


def test_an_offset_that_went_back_is_damage_and_not_passed_over() -> None:
    """A reader goes on where it was. Whoever believed that would take the next batch for the wanted one."""
    disk = SimulatedDisk()
    log = open_at(disk, ROOT, config=LARGE)
    for _ in range(40):
        append(log, bytes(100_000))
    segment = log.segments[0]
    found = segment.locate(3)
    assert found is not None
    segment.read_state().learn(3, found.position)
    disk.flip(segment.path(".log"), (found.position + 7) * 8)  # 3 becomes 2
    job = ReadAhead(log, segment, 3, 1)
    job.run()
    (damage,) = job.done()
    assert (damage.position, damage.offset, damage.end_offset) == (found.position, 3, 4)


@pytest.mark.parametrize("place", ["sealed", "active"])
def test_an_offset_that_jumped_ahead_is_damage_though_no_checksum_covers_it(place: str) -> None:
    """Of the last batch of a segment, which no other batch contradicts: a follower took it for a gap that
    compaction had left, and ended a million offsets behind its leader's end (seed 2004643)."""
    disk = SimulatedDisk()
    log = open_at(disk, ROOT, config=LARGE)
    for _ in range(40):
        append(log, bytes(100_000))
    segment = log.segments[0 if place == "sealed" else -1]
    offset = log.last_offset_of(segment)
    found = segment.locate(offset)
    assert found is not None
    disk.flip(segment.path(".log"), (found.position + 5) * 8 + 3)
    job = ReadAhead.at(log, segment, found.position)
    job.run()
    assert [damage.position for damage in job.done()] == [found.position]
    if place == "sealed":
        scrubbed = SegmentScrub(log, segment)
        run(scrubbed)
        assert scrubbed.fault is not None

"""Putting back what a sealed segment has lost: exactly that, or nothing."""

from __future__ import annotations

from random import Random

import pytest

from headrace.log.files import LOG
from headrace.log.partition_log import PartitionLog
from headrace.log.range_repair import Hole, RangeRepair, Unmendable
from headrace.testing.disk import SimulatedDisk
from tests.damage import CUT, EMPTIED, FLIPPED, MISSING, ZEROED, harm
from tests.unit.log.material import append, open_at, topic_config

ROOT = "/data"
SMALL = topic_config(segment_bytes=4000, index_interval_bytes=500)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def filled(disk: SimulatedDisk, count: int = 60) -> PartitionLog:
    log = open_at(disk, ROOT, config=SMALL)
    random = Random(7)
    for number in range(count):
        append(log, *[random.randbytes(random.randrange(40, 300))] * 2, leader_epoch=number // 20)
    log.flush()
    assert len(log.segments) > 3
    return log


def taken(log: PartitionLog, place: int = 0, high_watermark: int | None = None) -> RangeRepair | None:
    end = log.end_offset if high_watermark is None else high_watermark
    return RangeRepair.take(log, log.segments[place], end)


def mend(repair: RangeRepair, whole: bytes) -> list[Hole]:
    holes = repair.survey()
    for hole in holes:
        batches = whole[hole.position : hole.end]
        repair.check(hole, batches)
        repair.write(hole.position, memoryview(batches))
    repair.finish()
    repair.done()
    repair.close()
    return holes


@pytest.mark.parametrize("way", [CUT, EMPTIED, ZEROED, FLIPPED])
def test_whatever_was_lost_is_found_and_put_back(way: str) -> None:
    given_up = 0
    for seed in range(60):
        disk, random = SimulatedDisk(), Random(f"{way} {seed}")
        log = filled(disk)
        place = random.randrange(len(log.segments) - 1)
        path = log.segments[place].path(LOG)
        whole = disk.content(path)
        harmed = harm(whole, way, random)
        if harmed is None or harmed == whole:
            continue
        disk.put(path, harmed)
        repair = taken(log, place)
        assert repair is not None
        try:
            holes = mend(repair, whole)
        except Unmendable:
            given_up += 1
            continue
        assert disk.content(path) == whole, seed
        assert sum(hole.size for hole in holes) <= len(whole)
    # An offset or an epoch lies outside of the checksum: whoever is changed there is not always told apart.
    assert given_up <= (6 if way == FLIPPED else 0)


def test_a_small_hole_takes_one_batch(disk: SimulatedDisk) -> None:
    log = filled(disk)
    path = log.segments[1].path(LOG)
    whole = disk.content(path)
    found = log.segments[1].locate(log.segments[1].base_offset + 4)
    assert found is not None
    disk.flip(path, 8 * (found.position + 70))
    repair = taken(log, 1)
    assert repair is not None
    assert mend(repair, whole) == [
        Hole(found.position, found.position + found.size, found.base_offset, found.last_offset + 1)
    ]


def test_a_batch_that_says_a_wrong_offset_is_not_the_end_of_a_hole(disk: SimulatedDisk) -> None:
    """Zeros go over the end of one batch and the base offset of the next, which no checksum covers: it was
    taken for a whole batch of offset 0, and nothing was mended."""
    log = filled(disk)
    segment = log.segments[1]
    path = segment.path(LOG)
    whole = disk.content(path)
    found, behind = segment.locate(segment.base_offset + 4), segment.locate(segment.base_offset + 6)
    assert found is not None
    assert behind is not None
    disk.put(path, whole[: behind.position - 30] + bytes(38) + whole[behind.position + 8 :])
    repair = taken(log, 1)
    assert repair is not None
    assert mend(repair, whole) == [
        Hole(found.position, behind.position + behind.size, found.base_offset, behind.last_offset + 1)
    ]
    assert disk.content(path) == whole


def test_a_whole_segment_has_no_hole(disk: SimulatedDisk) -> None:
    repair = taken(filled(disk))
    assert repair is not None
    assert repair.survey() == []
    repair.finish()


def test_what_may_differ_between_replicas_is_not_mended_by_parts(disk: SimulatedDisk) -> None:
    log = filled(disk)
    assert taken(log, len(log.segments) - 1) is None, "it is written to"
    assert taken(log, 1, high_watermark=log.segments[2].base_offset - 1) is None, "not all of it is committed"
    assert taken(log, 1, high_watermark=log.segments[2].base_offset) is not None
    log.update_config(topic_config(segment_bytes=4000, cleanup_policy=frozenset({"compact"})))
    assert taken(log) is None, "bytes of compacted logs differ"


def test_what_was_not_synced_has_nothing_to_be_compared_with(disk: SimulatedDisk) -> None:
    log = open_at(disk, ROOT, config=SMALL)
    for _ in range(30):
        append(log, bytes(300))
    assert taken(log) is None


def test_what_does_not_fit_is_refused(disk: SimulatedDisk) -> None:
    log = filled(disk)
    path = log.segments[0].path(LOG)
    whole = disk.content(path)
    found = log.segments[0].locate(4)
    assert found is not None
    disk.flip(path, 8 * (found.position + 70))
    repair = taken(log)
    assert repair is not None
    (hole,) = repair.survey()
    right = whole[hole.position : hole.end]
    repair.check(hole, right)
    another_epoch = right[:12] + b"\0\0\0\1" + right[16:]
    another_offset = (hole.offset + 1).to_bytes(8, "big") + right[8:]
    for wrong in (right[:-1], bytes(hole.size), another_epoch, another_offset, b""):
        with pytest.raises(Unmendable):
            repair.check(hole, wrong)


def test_what_is_not_what_was_sealed_is_not_taken_for_mended(disk: SimulatedDisk) -> None:
    """The file of another log, whose batches are whole and fit: the fingerprint tells."""
    log = filled(disk)
    path = log.segments[0].path(LOG)
    other = SimulatedDisk()
    stranger = open_at(other, ROOT, config=SMALL)
    random = Random(8)
    whole = disk.content(path)
    while len(stranger.segments) == 1:
        append(stranger, *[random.randbytes(100)] * 2)
    disk.put(path, other.content(stranger.segments[0].path(LOG))[: len(whole)])
    repair = taken(log)
    assert repair is not None
    with pytest.raises(Unmendable):
        mend(repair, whole)


def test_a_log_that_is_cut_or_closed_meanwhile_is_left_alone(disk: SimulatedDisk) -> None:
    log = filled(disk)
    repair = taken(log, 1)
    assert repair is not None
    log.truncate_to(log.segments[2].base_offset)
    assert not repair.holds
    again = taken(log, 0)
    assert again is not None
    log.close()
    assert not again.holds


def test_a_missing_file_is_for_others(disk: SimulatedDisk) -> None:
    log = filled(disk)
    path = log.segments[0].path(LOG)
    assert harm(disk.content(path), MISSING, Random(1)) is None
    disk.lose(path)
    repair = taken(log)
    assert repair is not None
    with pytest.raises(FileNotFoundError):
        repair.survey()

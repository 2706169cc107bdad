"""Segments that nothing has noted are doubted at every start, until somebody vouches for them (rule 13)."""

from __future__ import annotations

from headrace.log.claims_file import FirstBatch
from headrace.log.manager import LogManager
from headrace.log.manifest import NAME as MANIFEST
from headrace.log.partition_log import PartitionLog
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, append, open_at, topic_config
from tests.unit.log.moving.world import PARTITION, fill, move, new_log, open_manager

SMALL = topic_config(segment_bytes=100)
"""A segment for each batch."""


def doubted(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments if not segment.is_vouched]


def reopened(disk: SimulatedDisk, recovery_point: int = 0) -> PartitionLog:
    disk.kill()
    return open_at(disk, "/data", config=SMALL, recovery_point=recovery_point, lost_nothing=True)


def test_a_second_crash_does_not_vouch() -> None:
    disk = SimulatedDisk()
    log = open_at(disk, "/data", config=SMALL)
    append(log, b"a")
    append(log, b"b")
    log.flush()  # the first segment is listed
    append(log, b"c")
    append(log, b"d")
    first = reopened(disk, 2)
    assert doubted(first) == [1, 3]
    first.flush()
    assert doubted(reopened(disk, 4)) == [1, 3], "a manifest would have vouched for what it lists"


def test_without_a_manifest_all_are_doubted() -> None:
    disk = SimulatedDisk()
    log = open_at(disk, "/data", config=SMALL)
    for value in (b"a", b"b", b"c"):
        append(log, value)
    assert doubted(reopened(disk)) == [0, 1, 2]


def test_what_somebody_vouches_for_is_listed_with_the_next_flush() -> None:
    disk = SimulatedDisk()
    log = open_at(disk, "/data", config=SMALL)
    for value in (b"a", b"b", b"c"):
        append(log, value)
    found = reopened(disk)
    assert not found.flush_is_due(NOW), "what is doubted is not waited for"
    first = found.doubtful
    assert first is not None
    found.vouch(first)
    assert (doubted(found), found.may_be_listed) == ([1, 2], 1)
    found.vouch()
    assert (doubted(found), found.may_be_listed, found.doubtful) == ([], 2, None)
    assert found.flush_is_due(NOW)
    found.flush()
    assert doubted(reopened(disk, 3)) == [2], "the last one is for the claims"


def test_the_claims_vouch_for_the_segment_that_they_know() -> None:
    disk = SimulatedDisk()
    log = open_at(disk, "/data", config=SMALL)
    append(log, b"a")
    noted = log.first_batch
    assert isinstance(noted, FirstBatch)
    disk.kill()
    assert doubted(open_at(disk, "/data", config=SMALL, first_batch=noted)) == []
    disk.kill()
    assert doubted(open_at(disk, "/data", config=SMALL, first_batch=noted._replace(checksum=1))) == [0]


def after_a_crash(disk: SimulatedDisk) -> LogManager:
    """Some of its segments nobody has noted."""
    manager = open_manager(disk)
    log = new_log(manager)
    fill(log, 0, 3)
    log.flush()
    for job in manager.take_checkpoint({PARTITION: 0}):
        job.run()
    fill(log, 3, 9)
    log.roll(NOW)
    log.flush()
    fill(log, 9, 40)
    disk.kill()
    again = open_manager(disk, lost_nothing=True)
    assert len(doubted(again.get(PARTITION))) > 2
    return again


def test_a_clean_stop_does_not_vouch() -> None:
    disk = SimulatedDisk()
    manager = after_a_crash(disk)
    before = doubted(manager.get(PARTITION))
    manager.shut_down(1, {PARTITION: 0})
    again = open_manager(disk, lost_nothing=True).get(PARTITION)
    assert doubted(again) == before
    assert again.first_batch is None, "the claims do not vouch either"


def test_after_a_clean_stop_the_manifest_vouches_if_it_is_whole() -> None:
    """Where it was damaged, a segment that was swapped with another partition's was led, and served."""
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = new_log(manager)
    fill(log, 0, 40)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 2
    manager.shut_down(1, {PARTITION: 0})
    assert doubted(open_manager(disk, lost_nothing=True).get(PARTITION)) == []
    path = f"{log.path}/{MANIFEST}"
    harmed = bytearray(disk.content(path))
    harmed[-20] ^= 1
    disk.put(path, bytes(harmed))
    assert doubted(open_manager(disk, lost_nothing=True).get(PARTITION)) == bases[:-1]


def test_a_move_to_another_directory_does_not_vouch() -> None:
    """A copy is no better than what it was made of."""
    disk = SimulatedDisk()
    manager = after_a_crash(disk)
    log = manager.get(PARTITION)
    before = doubted(log)
    assert move(manager, log, manager.directories[1])
    assert log.path.startswith("/b/")
    assert doubted(log) == before
    log.flush()
    disk.kill()
    again = open_manager(disk, lost_nothing=True).get(PARTITION)
    assert doubted(again) == before, "nor does its manifest"
    log, first = again, again.doubtful
    assert first is not None
    log.vouch(first)
    assert doubted(log) == before[1:]
    fill(log, 40, 60)
    log.flush()


def test_a_log_that_has_moved_lists_what_comes_after() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = new_log(manager)
    fill(log, 0, 40)
    assert move(manager, log, manager.directories[1])
    fill(log, 40, 80)
    assert log.may_be_listed == len(log.segments) - 1
    log.flush()
    disk.kill()
    again = open_manager(disk, lost_nothing=True).get(PARTITION)
    assert doubted(again) == [again.segments[-1].base_offset]

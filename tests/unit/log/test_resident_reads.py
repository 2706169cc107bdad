"""What the event loop may read: what is in memory and verified. All else is brought by a thread first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from headrace.core.errors import StorageError
from headrace.core.ports import FileRange
from headrace.log.index_blocks import IndexBlocks
from headrace.log.index_repair import IndexRepair
from headrace.log.os_disk import OsDisk, OsFile
from headrace.log.partition_log import PartitionLog
from headrace.log.read_ahead import ReadAhead
from headrace.log.read_state import ColdRead, Damage, ReadState
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW, append, open_at, topic_config, whole_batches

ROOT = "/data"
SMALL = topic_config(segment_bytes=4000, index_interval_bytes=200)
BATCHES = 200
LAST_OFFSET_DELTA_AT = 23


class CountingFile(OsFile):
    __slots__ = ()
    calls: ClassVar[list[str]] = []

    def pread(self, length: int, position: int) -> bytes:
        self.calls.append("pread")
        return super().pread(length, position)

    def pread_resident(self, length: int, position: int) -> bytes | None:
        self.calls.append("pread_resident")
        return super().pread_resident(length, position)

    def is_resident(self, position: int, length: int) -> bool:
        self.calls.append("is_resident")
        return super().is_resident(position, length)


class CountingDisk(OsDisk):
    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsFile:
        CountingFile.calls.append("open")
        file = super().open(path, create=create)
        counting = CountingFile(file.fileno())
        file._descriptor = -1
        return counting


def fill(log: PartitionLog) -> None:
    for number in range(BATCHES):
        append(log, b"%d" % number * 20, b"x" * 30, timestamp=NOW + number)


def loaded(disk: SimulatedDisk) -> PartitionLog:
    """A log that an earlier process has written."""
    log = open_at(disk, ROOT, config=SMALL)
    fill(log)
    log.close()
    return open_at(disk, ROOT, clean=True, recovery_point=2 * BATCHES, config=SMALL)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def try_read(log: PartitionLog, offset: int, max_bytes: int = 1000) -> FileRange:
    return log.read_resident(offset, max_bytes, limit=log.end_offset, min_one=True)


def bring(log: PartitionLog, cold: ColdRead, max_bytes: int = 1000) -> list[Damage]:
    job = ReadAhead(log, cold.segment, cold.offset, max_bytes)
    job.run()
    return job.done()


def read(log: PartitionLog, offset: int, max_bytes: int = 1000) -> FileRange:
    for _ in range(8):
        try:
            return try_read(log, offset, max_bytes)
        except ColdRead as cold:
            found = cold
        assert not bring(log, found, max_bytes)
    raise AssertionError("it stays cold")


def damage(log: PartitionLog, disk: SimulatedDisk, offset: int, *, zeroed: bool = False) -> int:
    """The position of the batch that holds `offset` and is damaged now."""
    segment = next(each for each in reversed(log.segments) if each.base_offset <= offset)
    found = segment.locate(offset)
    assert found is not None
    at, length = (found.position, found.size) if zeroed else (found.position + found.size - 5, 1)
    file = disk.open(segment.path(".log"))
    file.pwrite(bytes(length) if zeroed else b"\x7e", at)
    return found.position


def test_what_was_just_appended_is_read_at_once(disk: SimulatedDisk) -> None:
    log = open_at(disk, ROOT)
    append(log, b"a")
    assert try_read(log, 0).length


@pytest.mark.parametrize("max_bytes", [1, 150, 700, 5000])
def test_every_offset_is_found_as_a_read_that_waits_finds_it(disk: SimulatedDisk, max_bytes: int) -> None:
    log = loaded(disk)
    for offset in range(0, 2 * BATCHES, 7):
        found = read(log, offset, max_bytes)
        waited_for = log.read(offset, max_bytes, limit=log.end_offset, min_one=True)
        assert (found.file, found.position) == (waited_for.file, waited_for.position)
        assert 0 < found.length <= waited_for.length
        assert whole_batches(found.file.pread(found.length, found.position))


def test_what_another_process_has_written_is_verified_before_it_is_read(disk: SimulatedDisk) -> None:
    log = loaded(disk)
    disk.faults.append(Fault("pread", ROOT, 5))
    with pytest.raises(ColdRead) as cold:
        try_read(log, 0)
    disk.faults.clear()
    assert not bring(log, cold.value)
    assert try_read(log, 0).length


def test_a_segment_that_has_left_memory_is_verified_again(disk: SimulatedDisk) -> None:
    log = open_at(disk, ROOT, config=SMALL)
    fill(log)
    first = log.segments[0]
    assert read(log, 0).length
    disk.cold.add(first.path(".log"))
    with pytest.raises(ColdRead):
        try_read(log, 0)
    disk.cold.clear()
    damage(log, disk, 30)
    with pytest.raises(ColdRead) as cold:
        try_read(log, 30)  # its pages are there again, and nobody knows what they hold
    assert [found.offset for found in bring(log, cold.value)] == [30]


def test_a_read_from_the_disk_vouches_for_nothing_that_came_back_with_it(disk: SimulatedDisk) -> None:
    """The file was closed, its pages left memory, one batch was damaged there. A read of another batch brings
    all of them back, and what this process has once appended seems to have been there all the time."""
    log = open_at(disk, ROOT, config=SMALL)
    fill(log)
    first = log.segments[0]
    path = first.path(".log")
    content = bytearray(disk.content(path))
    content[first.locate(30).position + 70] ^= 1  # type: ignore[union-attr]  # it is there
    first.release()
    disk.put(path, bytes(content))
    with pytest.raises(ColdRead) as elsewhere:
        try_read(log, 4, 200)
    assert not bring(log, elsewhere.value, 200)
    assert try_read(log, 4, 200).length
    with pytest.raises(ColdRead) as cold:
        try_read(log, 30)
    assert [found.offset for found in bring(log, cold.value)] == [30]


@pytest.mark.parametrize(
    "look",
    [
        lambda log: log.enforce_retention(NOW + 1000, log.end_offset),
        lambda log: log.offset_for_timestamp(NOW + 1, log.end_offset),
        lambda log: log.segments[0].locate(30),
        lambda log: log.read(0, 10_000, limit=log.end_offset, min_one=True),
    ],
    ids=["retention", "time", "offset", "read"],
)
def test_whoever_only_looks_at_a_segment_vouches_for_nothing(
    disk: SimulatedDisk, look: Callable[[PartitionLog], object]
) -> None:
    """Retention once brought a damaged segment back into memory, where a reader took it for the one that had
    been verified there (seed 2005306)."""
    log = loaded(disk)
    assert read(log, 0, 10_000).length
    path = log.segments[0].path(".log")
    harmed = bytearray(disk.content(path))
    harmed[-5] ^= 1
    disk.put(path, bytes(harmed))
    log.update_config(topic_config(segment_bytes=4000, index_interval_bytes=200, retention_ms=1_000_000))
    found = look(log)
    if isinstance(found, FileRange):
        found.file.pread(found.length, found.position)
    assert disk.open(path).is_resident(0, 1)
    with pytest.raises(ColdRead):
        try_read(log, 0, 10_000)


@pytest.mark.parametrize("zeroed", [False, True])
def test_damage_is_given_to_nobody_and_the_rest_is_served(disk: SimulatedDisk, zeroed: bool) -> None:
    log = loaded(disk)
    position = damage(log, disk, 20, zeroed=zeroed)
    segment = log.segments[0]
    with pytest.raises(ColdRead) as cold:
        try_read(log, 20)
    (found,) = bring(log, cold.value)
    assert (found.position, found.offset) == (position, 20)
    segment.read_state().note_damage(found)
    with pytest.raises(StorageError, match=r"offset 20.*is damaged"):
        read(log, 20)
    before = read(log, 0, 10_000)
    assert (before.position, before.length) == (0, position)
    behind = read(log, 22)
    assert behind.position == found.end
    assert whole_batches(behind.file.pread(behind.length, behind.position))[0][0].base_offset == 22


def test_nobody_is_led_past_what_a_shorter_file_has_lost(disk: SimulatedDisk) -> None:
    """Its index points behind its end. That was once taken for a wrong index, and the end of the file for the
    end of the segment: readers went on with the next one, and missed the records without a word."""
    log = loaded(disk)
    segment = log.segments[0]
    path = segment.path(".log")
    found = segment.locate(20)
    assert found is not None
    disk.put(path, disk.content(path)[: found.position])
    for offset in (20, 21, log.segments[1].base_offset - 1):
        with pytest.raises(ColdRead) as cold:
            try_read(log, offset)
        for each in bring(log, cold.value):
            assert (each.position, each.end, each.offset) == (found.position, segment.size, 20)
            segment.read_state().note_damage(each)
        with pytest.raises(StorageError, match=r"offset 20.*is damaged"):
            read(log, offset)


def test_whoever_asks_a_third_time_gets_it_verified(disk: SimulatedDisk) -> None:
    log = loaded(disk)
    assert read(log, 20).length
    damage(log, disk, 20)  # in memory: nothing leaves it
    assert try_read(log, 20).length
    with pytest.raises(ColdRead) as cold:
        try_read(log, 20)
    assert [found.offset for found in bring(log, cold.value)] == [20]


def test_a_wrong_index_costs_time_and_is_made_again(disk: SimulatedDisk) -> None:
    log = loaded(disk)
    segment = log.segments[0]
    right = disk.open(segment.index.path).pread(1 << 20, 0)
    place = segment.index.search(20 - segment.base_offset)[0]
    disk.open(segment.index.path).pwrite(b"\0\0\0\x07", 8 * place + 4)
    log.segments[0].index.assume(segment.index.count)
    with pytest.raises(ColdRead) as cold:
        try_read(log, 20)
    job = ReadAhead(log, segment, cold.value.offset, 1000)
    job.run()
    assert not job.done()
    assert job.index_is_wrong
    assert try_read(log, 20).position == segment.locate(20).position  # type: ignore[union-attr]  # it is there
    disk.open(segment.index.path).pwrite(b"\0\0\0\x07", 8 * place + 4)
    repair = IndexRepair.take(log, segment)
    assert repair is not None
    repair.run()
    repair.done(NOW)
    assert disk.open(segment.index.path).pread(1 << 20, 0) == right
    assert log.segments[0] is not segment
    assert read(log, 20).length


def test_no_index_is_made_of_damaged_headers(disk: SimulatedDisk) -> None:
    """Beside one that lies about its last offset, the right index looks wrong. And the segment would become
    another object while the first is mended (seed 2005713)."""
    log = loaded(disk)
    segment = log.segments[0]
    relative, position = segment.index.entry(1)
    offset = segment.base_offset + relative
    disk.flip(segment.path(".log"), 8 * (position + LAST_OFFSET_DELTA_AT) + 3)
    job = ReadAhead(log, segment, offset, 1000)
    job.run()
    (found,) = job.done()
    assert found.position == position
    assert job.index_is_wrong
    segment.read_state().note_damage(found)
    assert IndexRepair.take(log, segment) is None


@pytest.mark.parametrize("index", ["right", "wrong"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_nobody_is_led_past_a_batch_that_says_it_ends_too_early(
    disk: SimulatedDisk, last: bool, index: str, in_memory: bool
) -> None:
    """Its last offset was believed where the wanted batch was looked for: by walking along an index that is
    wrong, and by headers that somebody had brought into memory. The reader went on behind it (seed 2026994).
    """
    log = loaded(disk)
    segment = log.segments[0]
    offset = log.segments[1].base_offset - 2 if last else 22
    found = segment.locate(offset)
    assert found is not None
    assert (found.base_offset, found.last_offset) == (offset, offset + 1)
    if in_memory:
        assert read(log, 0, 100).length
        segment.read_state()
    disk.flip(segment.path(".log"), 8 * (found.position + LAST_OFFSET_DELTA_AT + 3))  # 1 becomes 0
    if index == "wrong":
        for place in range(segment.index.count):
            disk.open(segment.index.path).pwrite(b"\0\0\0\x07", 8 * place + 4)
        segment.index.assume(segment.index.count)
    with pytest.raises(ColdRead) as cold:
        try_read(log, offset + 1)
    job = ReadAhead(log, segment, cold.value.offset, 1000)
    job.run()
    (damaged,) = job.done()
    assert damaged.position == found.position
    segment.read_state().note_damage(damaged)
    with pytest.raises(StorageError, match="is damaged"):
        try_read(log, offset + 1)


def test_what_a_thread_has_found_of_a_log_that_was_cut_means_nothing(disk: SimulatedDisk) -> None:
    log = loaded(disk)
    damage(log, disk, 20)
    job = ReadAhead(log, log.segments[0], 20, 1000)
    job.run()
    log.truncate_to(10)
    assert not job.holds
    assert not job.done()


def test_a_reader_in_order_asks_for_no_index(tmp_path: Path) -> None:
    """Two questions for each range, neither of which can wait for a disk, and no file is opened."""
    log = open_at(CountingDisk(), str(tmp_path), config=topic_config(index_interval_bytes=200))
    fill(log)
    log.roll(NOW)
    log.close()
    log = open_at(
        CountingDisk(),
        str(tmp_path),
        clean=True,
        recovery_point=2 * BATCHES,
        config=topic_config(index_interval_bytes=200),
    )
    at, seen = 0, []
    while at < log.segments[1].base_offset:
        CountingFile.calls.clear()
        try:
            found = try_read(log, at)
        except ColdRead as cold:
            bring(log, cold, 1 << 20)
            continue
        calls = list(CountingFile.calls)
        seen.append(at)
        if len(seen) > 1:
            assert calls in (["pread_resident", "is_resident"], ["is_resident"]), calls
        at = whole_batches(found.file.pread(found.length, found.position))[-1][0].next_offset
    assert len(seen) > 10


def test_index_blocks_keep_to_their_limit() -> None:
    blocks = IndexBlocks(max_bytes=10_000)
    owner = object()
    for number in range(100):
        blocks.put((owner, 0, number), bytes(1000))
        blocks.get((owner, 0, 0))
    assert blocks.held_bytes <= 10_000
    assert blocks.get((owner, 0, 0)) is not None, "what is asked for stays"
    assert blocks.get((owner, 0, 99)) is not None
    assert blocks.get((owner, 0, 50)) is None


def test_verified_ranges_grow_together() -> None:
    reads = ReadState()
    reads.note_verified(0, 100)
    reads.note_verified(200, 300)
    assert not reads.covers(50, 250)
    reads.note_verified(100, 200)
    assert reads.covers(0, 300)
    assert reads.run_before(300) == 300
    for number in range(100):
        reads.note_verified(1000 * number, 1000 * number + 10)
    assert reads.covers(99_000, 99_010)
    assert not reads.covers(0, 300), "only so many are remembered"


def test_a_cut_segment_is_damage_and_not_the_end_of_its_records(disk: SimulatedDisk) -> None:
    """The index leads behind the cut, so the thread walks there from the beginning. It once found nothing,
    and readers went on with the next segment: a follower copied the gap."""
    log = loaded(disk)
    segment = log.segments[1]
    path = segment.path(".log")
    position = segment.position_of(segment.base_offset + 20)
    disk.put(path, disk.content(path)[: position + 39])
    offset = log.segments[2].base_offset - 1
    with pytest.raises(ColdRead) as cold:
        try_read(log, offset)
    (damage,) = bring(log, cold.value)
    segment.read_state().note_damage(damage)
    with pytest.raises(StorageError, match="is damaged"):
        try_read(log, offset)

"""The manifest: what it notices, what is said before what is done, and what becomes of a lost one."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from headrace.core.errors import StorageError
from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, claims_file, files, manifest
from headrace.log.manifest import Contents, CorruptManifest, Manifest, Sealed
from headrace.log.wholeness import ALL_ON
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW, PARTITION, append, read_records
from tests.unit.log.test_wholeness import FOLDER, RECORDS, STOPS, Host

PATH = f"{FOLDER}/{manifest.NAME}"
SAMPLE = Contents(
    TopicPartition("a.b-c_d", 12),
    UUID(int=77),
    5,
    (Sealed(0, 10, 400, 0xDEADBEEF), Sealed(10, 30, 0, 0)),
    (Sealed(0, 30, 123, 1),),
    emptied=True,
)


@pytest.fixture
def host() -> Host:
    return Host()


def listed(host: Host) -> list[int]:
    known = manifest.load(host.disk, FOLDER)
    return [] if known is None else [each.base_offset for each in known.sealed]


def test_what_is_written_is_read() -> None:
    assert manifest.decode(manifest.encode(SAMPLE)) == SAMPLE


@pytest.mark.parametrize("bit", range(0, len(manifest.encode(SAMPLE)) * 8, 7))
def test_every_flipped_bit_is_noticed(bit: int) -> None:
    content = bytearray(manifest.encode(SAMPLE))
    content[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptManifest):
        manifest.decode(bytes(content))


@pytest.mark.parametrize("content", [b"", b"crc32c ", manifest.encode(SAMPLE)[:-1]])
def test_what_is_no_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptManifest):
        manifest.decode(content)


def test_a_segment_is_listed_by_the_flush_that_syncs_it(host: Host) -> None:
    host.fill()
    assert not host.disk.exists(PATH)
    assert host.log.flush_is_due(NOW)
    host.log.flush()
    assert listed(host) == [segment.base_offset for segment in host.log.segments[:-1]]
    assert not host.log.manifest.lacks(len(host.log.segments) - 1)


def test_what_listing_brings_back_to_memory_is_not_trusted(host: Host) -> None:
    """It had left memory and changed on the disk. Readers were once given it, as what this process wrote."""
    host.fill()
    segment = host.log.segments[0]
    path = segment.path(files.LOG)
    assert segment.is_trusted(0, segment.size)
    host.disk.put(path, host.disk.content(path))
    host.log.flush()
    assert not segment.is_trusted(0, segment.size)


@STOPS
def test_a_log_start_that_was_raised_between_two_flushes_leaves_no_stranger(host: Host, how: str) -> None:
    """Segments before it were not listed, though others before and behind them were: they looked like files
    of another log, and a good replica was quarantined."""
    host.fill(8)
    host.log.flush()
    assert len(listed(host)) == 1
    host.fill(20)
    host.log.delete_records_before(20)
    host.fill(10)
    host.log.flush()
    host.stop(how)
    host.start()
    assert not host.manager.quarantined
    assert (host.log.log_start_offset, host.log.end_offset) == (20, 38)


def test_a_log_of_one_segment_costs_no_manifest(host: Host) -> None:
    append(host.log, b"one")
    host.log.flush()
    host.stop("clean")
    host.start()
    assert not host.disk.exists(PATH)


@STOPS
def test_a_log_of_an_earlier_release_gets_one_when_it_is_opened(host: Host, how: str) -> None:
    host.fill()
    host.log.flush()
    host.stop(how)
    host.disk.remove(PATH)
    host.disk.lose(f"/data/{claims_file.NAME}")
    host.start()
    assert listed(host) == [segment.base_offset for segment in host.log.segments[:-1]]
    assert len(read_records(host.log)) == RECORDS


def damaged(how: Callable[[bytes], bytes | None]) -> Callable[[Host], None]:
    def damage(host: Host) -> None:
        changed = how(files.read_all(host.disk, PATH))
        host.disk.remove(PATH)
        if changed is not None:
            host.disk.open(PATH, create=True).pwrite(changed, 0)

    return damage


@STOPS
@pytest.mark.parametrize(
    "damage",
    [
        damaged(lambda _: None),
        damaged(lambda _: b""),
        damaged(lambda content: content[: len(content) // 2]),
        damaged(lambda content: bytes(len(content))),
        damaged(lambda content: content[:60] + b"X" + content[61:]),
    ],
    ids=["lost", "empty", "cut", "zeroed", "changed"],
)
def test_a_manifest_that_is_lost_or_damaged_alone_is_made_again(
    host: Host, how: str, damage: Callable[[Host], None]
) -> None:
    host.fill()
    host.log.delete_records_before(13)
    host.log.enforce_retention(NOW, RECORDS)
    host.log.flush()
    host.stop(how)
    damage(host)
    host.start()
    assert (host.log.log_start_offset, host.log.end_offset) == (13, RECORDS)
    assert listed(host) == []  # it vouches for nothing before somebody has vouched for the log (rule 13)
    assert host.log.manifest.replaces_lost is (how == "clean")
    host.log.vouch()
    host.log.flush()
    assert listed(host) == [segment.base_offset for segment in host.log.segments[:-1]]


@STOPS
@pytest.mark.parametrize("place", [0, 3, -1])
def test_without_it_a_missing_file_is_noticed_all_the_same(host: Host, how: str, place: int) -> None:
    host.fill()
    host.log.flush()
    host.stop(how)
    host.disk.remove(PATH)
    host.disk.remove(host.logs()[place])
    host.start()
    assert host.why_quarantined()


@STOPS
def test_a_log_start_checkpoint_that_is_lost_alone_is_no_damage(host: Host, how: str) -> None:
    host.fill()
    host.log.delete_records_before(13)
    host.log.enforce_retention(NOW, RECORDS)
    host.log.folder.delete_expired_files(NOW + 10**9)
    host.stop(how)
    for name in (checkpoints.LOG_START_OFFSETS, checkpoints.HIGH_WATERMARKS):
        if host.disk.exists(f"/data/{name}"):
            host.disk.remove(f"/data/{name}")
    host.start()
    assert host.log.log_start_offset >= host.log.segments[0].base_offset > 0


def swap_with_another(host: Host, path: str) -> None:
    """Same size, same offsets, other records: as the same segment of another partition may be."""
    other = Host()
    for number in range(RECORDS):
        append(other.log, b"%d" % (99 - number), timestamp=NOW + number)
    content = files.read_all(other.disk, path)
    assert len(content) == host.disk.size(path)
    host.disk.open(path).pwrite(content, 0)


def zero_the_end(host: Host, path: str) -> None:
    size = host.disk.size(path)
    host.disk.open(path).pwrite(bytes(100), size - 100)


CHANGES: dict[str, Callable[[Host, str], None]] = {
    "swapped": swap_with_another,
    "its end zeroed": zero_the_end,
    "a byte longer": lambda host, path: host.disk.open(path).pwrite(b"x", host.disk.size(path)),
    "its beginning flipped": lambda host, path: host.disk.flip(path, 8 * 30),
}


@STOPS
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", [0, 2])
def test_a_sealed_file_that_is_another_is_noticed(host: Host, how: str, change: str, place: int) -> None:
    host.fill()
    host.log.flush()
    host.stop(how)
    CHANGES[change](host, host.logs()[place])
    before = host.contents()
    host.start()
    assert host.why_quarantined()
    assert host.contents() == before


def test_a_file_that_was_not_there_is_noticed(host: Host) -> None:
    host.fill()
    host.stop("clean")
    first, second = host.log.segments[0].base_offset, host.log.segments[1].base_offset
    path = f"{FOLDER}/{files.numbered((first + second) // 2)}.log"
    host.disk.open(path, create=True).pwrite(b"from a backup", 0)
    host.start()
    assert host.why_quarantined()


def test_the_files_of_another_partition_are_not_this_one(host: Host) -> None:
    other = TopicPartition(PARTITION.topic, 7)
    host.fill()
    host.stop("clean")
    host.disk.rename(FOLDER, f"/data/{other}")
    host.start()
    assert other in host.manager.quarantined


def test_the_switch_of_the_manifest_is_noticed() -> None:
    for rules, is_served in ((ALL_ON, False), (replace(ALL_ON, manifest=False), True)):
        host = Host()
        host.fill()
        host.stop("clean")
        swap_with_another(host, host.logs()[1])
        host.start(rules)
        assert (PARTITION in host.manager.logs) is is_served


# --- what is said before what is done ---


def test_the_log_start_is_on_the_disk_before_a_file_goes(host: Host) -> None:
    host.fill()
    host.log.flush()
    host.log.delete_records_before(13)
    job = host.log.take_retention(NOW, RECORDS)
    assert job is not None
    before = host.logs()
    host.disk.faults.append(Fault("sync", PATH, errno.EIO))
    with pytest.raises(StorageError):
        job.run()
    assert host.logs() == before


def test_with_the_order_switched_off_a_kill_makes_a_whole_log_look_damaged() -> None:
    for rules, is_served in ((ALL_ON, True), (replace(ALL_ON, start_before_files=False), False)):
        host = Host()
        host.start(rules)
        host.fill()
        host.log.flush()
        host.log.delete_records_before(13)
        host.log.enforce_retention(NOW, RECORDS)
        host.manager.release()
        host.disk.kill()
        host.start(rules)
        assert (PARTITION in host.manager.logs) is is_served, rules


def test_a_ticket_of_retention_from_before_a_truncation_removes_nothing(host: Host) -> None:
    host.fill()
    host.log.flush()
    host.log.delete_records_before(13)
    job = host.log.take_retention(NOW, RECORDS)
    assert job is not None
    host.log.truncate_fully_and_start_at(2)
    job.run()
    assert job.done(NOW) == 0
    host.stop("killed")
    host.start()
    assert PARTITION in host.manager.logs


def test_a_log_start_that_retention_raised_before_a_truncation_is_written_by_a_checkpoint(host: Host) -> None:
    """A follower reports only what is on the disk. Nothing else would ever say that it is."""
    host.fill()
    host.log.flush()
    host.log.config = replace(host.log.config, retention_bytes=host.log.size_bytes // 2)
    job = host.log.take_retention(NOW, RECORDS)
    assert job is not None
    host.log.truncate_to(RECORDS - 1)
    job.run()
    assert job.done(NOW) == 0
    assert 0 == host.log.durable_start < host.log.log_start_offset
    assert list(host.log.directory.raised) == [host.log]


def test_a_listing_from_before_a_truncation_is_void(host: Host) -> None:
    host.fill()
    job = host.log.take_flush()
    assert job is not None
    host.log.truncate_to(12)
    job.run()
    job.done()
    assert all(base < 12 for base in listed(host))
    for number in range(20):
        append(host.log, b"again %d" % number)
    host.stop("clean")
    host.start()
    assert host.log.end_offset == 32
    assert listed(host) == [segment.base_offset for segment in host.log.segments[:-1]]


@pytest.mark.parametrize("boundary", range(1, RECORDS))
def test_a_cut_log_is_whole_wherever_it_is_cut(host: Host, boundary: int) -> None:
    host.fill()
    host.log.flush()
    host.log.truncate_to(boundary)
    append(host.log, b"next", leader_epoch=1)
    host.log.roll(NOW)
    host.stop("killed")
    host.start()
    assert host.log.end_offset == boundary + 1


@pytest.mark.parametrize("offset", [0, 3, 500])
@pytest.mark.parametrize("removals", [0, 1, 3, 100])
def test_an_interrupted_drop_of_everything_is_finished(host: Host, offset: int, removals: int) -> None:
    """As a process that is killed after some of the files went leaves it."""
    host.fill()
    host.log.flush()
    host.checkpoint()
    host.log.directory.lower_checkpoints({PARTITION: (0, offset, offset)})
    host.log.manifest.empty(offset)
    host.log.manifest.save()
    for path in list(reversed(host.logs()))[:removals]:
        host.disk.remove(path)
    host.manager.release()
    host.disk.kill()
    host.start()
    assert (host.log.log_start_offset, host.log.end_offset) == (offset, offset)
    assert append(host.log, b"next", leader_epoch=1).base_offset == offset


def test_a_closed_log_writes_no_manifest() -> None:
    """Its name may belong to another by now."""
    disk = SimulatedDisk()
    disk.make_dirs(FOLDER)
    kept = Manifest(disk, FOLDER, SAMPLE)
    kept.close()
    kept.save()
    assert not disk.exists(PATH)

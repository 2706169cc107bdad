"""Opening a log after a stop, clean or not."""

from __future__ import annotations

import errno
from collections.abc import Callable
from uuid import UUID

import pytest

from headrace.core.errors import CorruptLog
from headrace.log import checkpoints, files, manifest
from headrace.log.partition_log import PartitionLog
from headrace.log.wholeness import Claims
from headrace.protocol.records import encode_batch
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.invariants import check_invariants
from tests.unit.log.material import (
    NOW,
    PARTITION,
    append,
    open_at,
    read_bytes,
    read_records,
    records,
    topic_config,
    values_of,
)

FOLDER = f"/data/{PARTITION}"
CONFIG = topic_config(segment_bytes=400, index_interval_bytes=100)


def path_of(offset: int, suffix: str) -> str:
    return f"{FOLDER}/{files.numbered(offset)}{suffix}"


def written(batches: int = 12) -> tuple[SimulatedDisk, PartitionLog]:
    disk = SimulatedDisk()
    log = open_at(disk, "/data", config=CONFIG)
    for number in range(batches):
        append(
            log,
            b"%d" % number,
            timestamp=NOW + number,
            leader_epoch=number // 5,
            producer_id=7,
            producer_epoch=0,
            base_sequence=number,
        )
    assert len(log.segments) >= 3
    return disk, log


def reopen(
    disk: SimulatedDisk, *, clean: bool = False, recovery_point: int = 0, accept_loss: bool = False
) -> PartitionLog:
    log = open_at(
        disk, "/data", config=CONFIG, clean=clean, recovery_point=recovery_point, accept_loss=accept_loss
    )
    check_invariants(log)
    return log


def numbers(count: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(count)]


def write_at(disk: SimulatedDisk, path: str, data: bytes, position: int | None = None) -> None:
    file = disk.open(path, create=True)
    file.pwrite(data, file.size() if position is None else position)
    file.close()


def test_a_clean_stop_needs_no_walk() -> None:
    disk, log = written()
    log.close()
    before = {path: files.read_all(disk, path) for path in disk.files(FOLDER)}
    again = reopen(disk, clean=True, recovery_point=12)
    assert values_of(read_records(again)) == numbers(12)
    assert again.epochs.entries == [(0, 0), (1, 5), (2, 10)]
    entry = again.producers.get(7)
    assert entry is not None
    assert entry.last_sequence == 11
    assert {path: files.read_all(disk, path) for path in disk.files(FOLDER)} == before


def test_a_killed_process_loses_nothing() -> None:
    disk, _ = written()
    disk.kill()
    assert values_of(read_records(reopen(disk))) == numbers(12)


@pytest.mark.parametrize("garbage", [b"\0" * 30, b"\0" * 300, b"\xff" * 100, bytes(range(256))])
def test_garbage_behind_the_last_batch_is_cut_off(garbage: bytes) -> None:
    disk, log = written()
    active = log.active_segment
    disk.kill()
    write_at(disk, active.path(files.LOG), garbage)
    again = reopen(disk)
    assert values_of(read_records(again)) == numbers(12)
    assert disk.size(active.path(files.LOG)) == active.size


def test_a_torn_last_batch_is_cut_off_and_its_offset_used_again() -> None:
    disk, log = written()
    active = log.active_segment
    disk.kill()
    file = disk.open(active.path(files.LOG))
    file.truncate(active.size - 1)
    again = reopen(disk)
    assert values_of(read_records(again)) == numbers(11)
    assert append(again, b"again", leader_epoch=9).base_offset == 11


def test_a_fault_drops_the_segments_behind_it() -> None:
    disk, log = written()
    second = log.segments[1]
    disk.kill()
    disk.flip(second.path(files.LOG), 8 * (second.size - 1))
    again = reopen(disk)
    assert again.end_offset < log.segments[2].base_offset
    assert not disk.exists(log.segments[2].path(files.LOG))
    assert values_of(read_records(again)) == numbers(again.end_offset)


EPOCH_BIT_1 = 15 * 8 + 1
"""In the header of a batch: it makes a 3 of a 1, and the other way round."""


def three_batches(*epochs: int) -> tuple[SimulatedDisk, PartitionLog]:
    """Five records each, all in one segment, not synced."""
    disk = SimulatedDisk()
    log = open_at(disk, "/data")
    for epoch in epochs:
        append(log, *[b"x"] * 5, leader_epoch=epoch)
    disk.kill()
    return disk, log


@pytest.mark.parametrize("epochs_are_known", [True, False])
def test_damage_to_the_second_batch_leaves_the_first(epochs_are_known: bool) -> None:
    """Its epoch falls back behind that of the first: which of the two is wrong, the epochs' file knows."""
    disk, log = three_batches(3, 3, 3)
    disk.flip(path_of(0, ".log"), 8 * log.active_segment.size // 3 + EPOCH_BIT_1)
    if not epochs_are_known:
        disk.remove(log.epochs.path)
    again = open_at(disk, "/data")
    assert (again.end_offset, again.epochs.entries) == (5, [(3, 0)])


def test_a_first_batch_whose_epoch_is_not_the_known_one_is_cut_off() -> None:
    disk, _ = three_batches(1, 1, 1)
    disk.flip(path_of(0, ".log"), EPOCH_BIT_1)
    assert open_at(disk, "/data").end_offset == 0


def test_damage_behind_the_first_batch_of_a_segment_leaves_it() -> None:
    """The segments before tell which epoch it may have."""
    disk = SimulatedDisk()
    log = open_at(disk, "/data")
    append(log, *[b"x"] * 5, leader_epoch=3)
    log.roll(NOW)
    for _ in range(3):
        append(log, *[b"x"] * 5, leader_epoch=3)
    disk.kill()
    disk.flip(path_of(5, ".log"), 8 * log.active_segment.size // 3 + EPOCH_BIT_1)
    disk.remove(log.epochs.path)
    assert open_at(disk, "/data").end_offset == 10


@pytest.mark.parametrize("epochs_are_known", [True, False])
@pytest.mark.parametrize("lost_nothing", [True, False], ids=["killed", "without power"])
@pytest.mark.parametrize(("epoch", "damaged"), [(1, 5), (3, 10)], ids=["jumps ahead", "falls back"])
def test_an_epoch_that_does_not_fit_the_next_segment_is_damage(
    epoch: int, damaged: int, lost_nothing: bool, epochs_are_known: bool
) -> None:
    """In the last batch of a segment, or in the first of the next. It was believed, and a leader told a
    follower that had everything to cut off what was committed (seed 2005673)."""
    disk = SimulatedDisk()
    log = open_at(disk, "/data")
    for _ in range(2):
        for _ in range(2):
            append(log, *[b"x"] * 5, leader_epoch=epoch)
        log.roll(NOW)
    segment = log.segments[damaged // 10]
    found = segment.locate(damaged)
    assert found is not None
    disk.kill()
    disk.flip(segment.path(files.LOG), 8 * found.position + EPOCH_BIT_1)
    if not epochs_are_known:
        disk.remove(log.epochs.path)
    if lost_nothing:
        with pytest.raises(CorruptLog, match="leader epoch does not fit"):
            open_at(disk, "/data", lost_nothing=True)
    else:
        again = open_at(disk, "/data")
        assert (again.end_offset, again.epochs.entries) == (damaged, [(epoch, 0)])


def test_an_offset_that_falls_back_leaves_the_first_batch_of_an_epoch() -> None:
    """An epoch begins with it, but its offset is the one that had to come."""
    disk, log = three_batches(2, 3, 3)
    size = log.active_segment.size // 3
    disk.flip(path_of(0, ".log"), 8 * (2 * size + 7) + 3)  # offset 10 becomes 2
    assert open_at(disk, "/data").end_offset == 10


def test_a_hole_between_unsynced_segments_ends_the_log() -> None:
    disk, log = written()
    second = log.segments[1]
    disk.kill()
    headers = [position for position, _ in _positions(log, 1)]
    disk.open(second.path(files.LOG)).truncate(headers[-1])  # a whole batch less: no checksum is wrong
    again = reopen(disk)
    assert again.end_offset == log.segments[2].base_offset - 1


def _positions(log: PartitionLog, place: int) -> list[tuple[int, int]]:
    from headrace.log import scan

    segment = log.segments[place]
    file = log.directory.disk.open(segment.path(files.LOG))
    return [(at, header.base_offset) for at, header in scan.headers(file, 0, segment.size)]


@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_damage_below_the_recovery_point_is_not_repaired_in_silence(damage: str) -> None:
    disk, log = written()
    log.flush()
    active = log.active_segment.path(files.LOG)
    disk.kill()
    if damage == "flip":
        disk.flip(active, 8 * 70)
    elif damage == "cut":
        disk.open(active).truncate(disk.size(active) - 1)
    else:
        for path in disk.files(FOLDER):
            disk.remove(path)
    before = {path: files.read_all(disk, path) for path in disk.files(FOLDER) if path.endswith(".log")}
    with pytest.raises(CorruptLog, match="synced"):
        reopen(disk, recovery_point=12)
    assert {p: files.read_all(disk, p) for p in disk.files(FOLDER) if p.endswith(".log")} == before
    accepted = reopen(disk, recovery_point=12, accept_loss=True)
    assert accepted.end_offset < 12
    assert values_of(read_records(accepted)) == numbers(accepted.end_offset)


def test_a_sealed_segment_that_lost_its_end_is_noticed() -> None:
    disk, log = written()
    log.flush()
    sealed = log.segments[0]
    disk.kill()
    disk.open(sealed.path(files.LOG)).truncate(sealed.size - 10)
    with pytest.raises(CorruptLog):
        reopen(disk, recovery_point=12)


Damage = Callable[[SimulatedDisk, str], None]
DAMAGES: dict[str, Damage] = {
    "gone": lambda disk, path: disk.remove(path),
    "empty": lambda disk, path: disk.open(path).truncate(0),
    "odd length": lambda disk, path: write_at(disk, path, b"x"),
    "zeros": lambda disk, path: disk.open(path).pwrite(bytes(disk.size(path)), 0),
    "a flip at its end": lambda disk, path: disk.flip(path, disk.size(path) * 8 - 5),
    "a flip at its beginning": lambda disk, path: disk.flip(path, 7),
}


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"])
def test_what_is_derived_is_rebuilt(suffix: str, damage: str, clean: bool) -> None:
    disk, log = written()
    log.close()
    for path in disk.files(FOLDER):
        if path.endswith(suffix) and disk.size(path):
            DAMAGES[damage](disk, path)
    again = open_at(disk, "/data", config=CONFIG, clean=clean, recovery_point=12)
    assert values_of(read_records(again)) == numbers(12)
    for number in range(12):
        found = again.offset_for_timestamp(NOW + number, 12)
        assert found is not None
        assert found.offset == number
    check_invariants(again)
    assert again.epochs.entries == [(0, 0), (1, 5), (2, 10)]
    entry = again.producers.get(7)
    assert entry is not None
    assert entry.last_sequence == 11


def test_leftovers_are_tidied() -> None:
    disk, log = written()
    log.close()
    for name in ("00000000000000000000.log.deleted", "00000000000000000099.log.cleaned", "x.tmp"):
        write_at(disk, f"{FOLDER}/{name}", b"left")
    write_at(disk, path_of(77, ".index"), b"orphan")
    again = reopen(disk, clean=True, recovery_point=12)
    assert values_of(read_records(again)) == numbers(12)
    assert not [path for path in disk.files(FOLDER) if path.endswith((".deleted", ".cleaned", ".tmp"))]
    assert not disk.exists(path_of(77, ".index"))


def test_a_finished_swap_takes_its_place() -> None:
    disk, log = written()
    log.close()
    first, second = log.segments[0].base_offset, log.segments[1].base_offset
    last = log.segments[2].base_offset - 1
    compacted = encode_batch(records(b"kept"), base_offset=last, leader_epoch=0)
    write_at(disk, path_of(first, ".log.swap"), bytes(compacted))
    write_at(disk, path_of(first, ".index.swap"), b"whatever")
    known = manifest.load(disk, FOLDER)
    assert known is not None
    sample = manifest.fingerprint(disk.open(path_of(first, ".log.swap")), len(compacted))
    swap = manifest.Sealed(first, last + 1, len(compacted), sample)
    files.replace(
        disk, f"{FOLDER}/{manifest.NAME}", manifest.encode(known._replace(announced=(swap,))), sync=True
    )
    again = open_at(disk, "/data", config=CONFIG, clean=True, recovery_point=12)
    assert not disk.exists(path_of(second, ".log"))
    assert [record.offset for record in read_records(again)] == list(range(last, 12))
    assert read_records(again)[0].value == b"kept"


def test_an_unfinished_swap_is_dropped() -> None:
    disk, log = written()
    log.close()
    compacted = encode_batch(records(b"kept"), base_offset=0)
    write_at(disk, path_of(0, ".log.swap"), bytes(compacted[:-1]))
    assert values_of(read_records(reopen(disk, clean=True, recovery_point=12))) == numbers(12)


def test_a_log_start_beyond_the_lost_end_begins_anew() -> None:
    disk, _ = written()
    disk.kill()
    again = open_at(disk, "/data", config=CONFIG, log_start_offset=50)
    assert (again.log_start_offset, again.end_offset) == (50, 50)
    assert append(again, b"next", leader_epoch=4).base_offset == 50
    assert again.epochs.entries == [(4, 50)]


def test_a_foreign_log_keeps_its_gaps_and_loses_only_a_torn_tail() -> None:
    disk = SimulatedDisk()
    disk.make_dirs(FOLDER)
    write_at(disk, path_of(0, ".log"), bytes(encode_batch(records(b"a"), base_offset=3, leader_epoch=1)))
    tail = encode_batch(records(b"b"), base_offset=40, leader_epoch=2)
    write_at(disk, path_of(20, ".log"), bytes(tail) + bytes(tail[:50]))
    write_at(disk, path_of(20, ".index"), bytes(800))
    log = _open_foreign(disk)
    assert [record.offset for record in read_records(log)] == [3, 40]
    assert log.epochs.entries == [(1, 3), (2, 40)]
    check_invariants(log)


def test_a_foreign_log_with_a_damaged_middle_is_refused() -> None:
    disk = SimulatedDisk()
    disk.make_dirs(FOLDER)
    write_at(disk, path_of(0, ".log"), bytes(encode_batch(records(b"a"))[:-1]) + b"!")
    write_at(disk, path_of(1, ".log"), bytes(encode_batch(records(b"b"), base_offset=1)))
    with pytest.raises(CorruptLog, match="checksum"):
        _open_foreign(disk)


def _open_foreign(disk: SimulatedDisk) -> PartitionLog:
    from headrace.log.recovery import open_log
    from tests.unit.log.material import new_directory

    return open_log(
        new_directory(disk, "/data"),
        FOLDER,
        PARTITION,
        CONFIG,
        Claims(),
        clean=False,
        now_ms=NOW,
        foreign=True,
    )


def test_an_empty_log_costs_no_sync_and_its_first_flush_still_makes_it_durable() -> None:
    disk = SimulatedDisk()
    disk.make_dirs(FOLDER)
    # As a process leaves it that is killed at once.
    disk.open(path_of(0, files.LOG), create=True).close()
    identity = checkpoints.format_partition_metadata(UUID(int=42))
    files.replace(disk, f"{FOLDER}/{files.PARTITION_METADATA}", identity, sync=False)
    disk.sync_dir("/data")
    disk.sync_dir("/")
    disk.faults.extend([Fault("sync", FOLDER, errno.EIO), Fault("sync_dir", FOLDER, errno.EIO)])
    log = reopen(disk)
    disk.faults.clear()
    append(log, b"first")
    log.flush()
    disk.crash(keep=0.0)
    log = reopen(disk, recovery_point=1)
    assert values_of(read_records(log)) == [b"first"]
    assert log.topic_id == UUID(int=42)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "entries", [[(0, 0)], [(0, 0), (1, 5)], [(0, 0), (2, 10)], [(2, 0)], [(0, 0), (1, 5), (2, 10), (3, 12)]]
)
def test_the_epochs_of_another_log_are_not_believed(clean: bool, entries: list[tuple[int, int]]) -> None:
    """One that was left out made a follower cut off what was written in it, and committed."""
    disk, log = written()
    log.close()
    lines = checkpoints.format_lines(f"{epoch} {start}" for epoch, start in entries)
    disk.put(log.epochs.path, lines)
    again = reopen(disk, clean=clean, recovery_point=log.end_offset)
    assert again.epochs.entries[:3] == [(0, 0), (1, 5), (2, 10)]


def test_a_segment_whose_index_cannot_be_rebuilt_is_as_long_as_before() -> None:
    """A reader would pass over what is missing, and go on with the next one."""
    disk, log = written()
    segment = log.segments[1]
    size, path = segment.size, segment.path(files.LOG)
    disk.put(path, disk.content(path)[:-10])
    with pytest.raises(CorruptLog):
        segment.rebuild_indexes()
    assert segment.size == size


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_made_again_is_told_of(suffix: str, place: int) -> None:
    """At the start, or when it is first asked."""
    disk = SimulatedDisk()
    config = topic_config(segment_bytes=1200, index_interval_bytes=150)
    log = open_at(disk, "/data", config=config)
    for number in range(30):
        append(log, b"x" * 60, timestamp=NOW + number)
    log.close()
    segment = log.segments[place]
    path = segment.path(suffix)
    file = disk.open(path)
    file.pwrite(b"\x80", file.size() - 4)
    told: list[str] = []
    log = open_at(disk, "/data", clean=True, recovery_point=30, config=config, on_rebuilt=told.append)
    for offset in range(30):
        assert read_bytes(log, offset, 100)
    log.offset_for_timestamp(NOW + 1, 30)
    assert path in told

"""What only the simulated disk does: lose, tear, flip, fail."""

from __future__ import annotations

import errno

import pytest

from headrace.testing.disk import Fault, SimulatedDisk
from headrace.testing.disk_nodes import SECTOR_BYTES


def written(seed: int) -> tuple[SimulatedDisk, bytes]:
    """A synced file of two sectors, over which three unsynced ones were written."""
    disk = SimulatedDisk(seed)
    disk.make_dirs("/d")
    disk.sync_dir("/")
    file = disk.open("/d/a", create=True)
    file.pwrite(b"s" * 2 * SECTOR_BYTES, 0)
    file.sync()
    disk.sync_dir("/d")
    file.pwrite(b"n" * 3 * SECTOR_BYTES, SECTOR_BYTES)
    disk.crash()
    return disk, disk.open("/d/a").pread(1 << 20, 0)


def test_synced_bytes_survive_and_others_may_be_torn() -> None:
    outcomes = {written(seed)[1] for seed in range(200)}
    assert all(content[:SECTOR_BYTES] == b"s" * SECTOR_BYTES for content in outcomes)
    assert b"s" * 2 * SECTOR_BYTES in outcomes, "all lost"
    assert b"s" * SECTOR_BYTES + b"n" * 3 * SECTOR_BYTES in outcomes, "all kept"
    assert any(0 < content.count(b"n") < 3 * SECTOR_BYTES for content in outcomes), "torn"
    assert any(b"\0" in content for content in outcomes), "a hole"


def test_the_same_seed_gives_the_same_disk() -> None:
    assert [written(seed)[1] for seed in range(20)] == [written(seed)[1] for seed in range(20)]


def test_names_need_a_sync_of_their_folder() -> None:
    seen = set()
    for seed in range(50):
        disk = SimulatedDisk(seed)
        disk.make_dirs("/d")
        disk.sync_dir("/")
        disk.open("/d/old", create=True).close()
        disk.sync_dir("/d")
        disk.open("/d/new", create=True).sync()
        disk.rename("/d/old", "/d/renamed")
        disk.crash(keep=0.5)
        seen.add(tuple(disk.list("/d")))
    assert seen == {("old",), ("new", "old"), ("new", "renamed")}


def test_a_killed_process_leaves_its_cache() -> None:
    disk = SimulatedDisk()
    disk.make_dirs("/d")
    disk.open("/d/a", create=True).pwrite(b"kept", 0)
    disk.kill()
    assert disk.open("/d/a").pread(10, 0) == b"kept"


def test_files_of_before_a_crash_are_dead() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    disk.kill()
    with pytest.raises(OSError):
        file.pwrite(b"ghost", 0)


def test_a_flip_changes_one_bit_for_good() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    file.pwrite(b"\0\0", 0)
    file.sync()
    disk.sync_dir("/")
    disk.flip("/a", 9)
    disk.crash(keep=0.0)
    assert disk.open("/a").pread(2, 0) == b"\0\2"


def test_faults_are_raised_where_they_were_put() -> None:
    disk = SimulatedDisk()
    file = disk.open("/a", create=True)
    disk.faults.append(Fault("sync", "/a", errno.EIO))
    file.pwrite(b"x", 0)
    with pytest.raises(OSError, match="Input/output") as caught:
        file.sync()
    assert caught.value.errno == errno.EIO
    disk.open("/b", create=True).sync()


def test_a_full_disk_takes_what_fits() -> None:
    disk = SimulatedDisk()
    disk.free = 4
    file = disk.open("/a", create=True)
    with pytest.raises(OSError) as caught:
        file.pwrite(b"abcdef", 0)
    assert caught.value.errno == errno.ENOSPC
    assert file.pread(10, 0) == b"abcd"
    file.pwrite(b"ABCD", 0)

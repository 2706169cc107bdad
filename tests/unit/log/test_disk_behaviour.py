"""What the log may expect of any disk: the real one and the simulated one pass the same tests."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headrace.core.ports import Disk, SyncFailed
from headrace.log.os_disk import OsDisk
from headrace.testing.disk import Fault, SimulatedDisk


@pytest.fixture(params=["os", "simulated"])
def disk(request: pytest.FixtureRequest) -> Disk:
    return OsDisk() if request.param == "os" else SimulatedDisk()


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> str:
    disk.make_dirs(str(tmp_path))
    return str(tmp_path)


def test_writes_are_positioned_and_read_back(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"hello", 3)
    file.pwrite(memoryview(b"xyz!")[:3], 0)
    assert file.pread(100, 0) == b"xyzhello"
    assert file.pread(2, 4) == b"el"
    assert file.pread(5, 8) == b""
    assert file.size() == disk.size(f"{root}/a") == 8
    file.sync()
    file.close()


def test_a_hole_reads_as_zeros(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"x", 600)
    assert file.pread(601, 0) == bytes(600) + b"x"


def test_truncate_shortens_and_lengthens(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"abcdef", 0)
    file.truncate(2)
    assert file.pread(10, 0) == b"ab"
    file.truncate(4)
    assert file.pread(10, 0) == b"ab\0\0"


def test_opening_does_not_create_unless_told(disk: Disk, root: str) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/a")
    disk.open(f"{root}/a", create=True).close()
    assert disk.open(f"{root}/a").size() == 0
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/no/a", create=True)


def test_a_closed_file_is_refused(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.close()
    file.close()
    with pytest.raises(OSError):
        file.pread(1, 0)


def test_names_are_listed_in_order(disk: Disk, root: str) -> None:
    for name in ("b", "c", "a"):
        disk.open(f"{root}/{name}", create=True).close()
    disk.make_dirs(f"{root}/d/e")
    assert disk.list(root) == ["a", "b", "c", "d"]
    assert disk.is_dir(f"{root}/d/e")
    assert not disk.is_dir(f"{root}/a")
    assert not disk.is_dir(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        disk.list(f"{root}/none")


def test_rename_replaces_and_an_open_file_follows(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"new", 0)
    old = disk.open(f"{root}/b", create=True)
    old.pwrite(b"old", 0)
    disk.rename(f"{root}/a", f"{root}/b")
    disk.sync_dir(root)
    assert disk.list(root) == ["b"]
    assert disk.open(f"{root}/b").pread(3, 0) == b"new"
    assert old.pread(3, 0) == b"old"
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{root}/a", f"{root}/c")


def test_a_removed_file_can_still_be_read_by_who_has_it_open(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"still", 0)
    disk.remove(f"{root}/a")
    assert not disk.exists(f"{root}/a")
    assert file.pread(5, 0) == b"still"
    with pytest.raises(FileNotFoundError):
        disk.remove(f"{root}/a")


def test_a_tree_is_removed_whole(disk: Disk, root: str) -> None:
    disk.make_dirs(f"{root}/d/e")
    disk.open(f"{root}/d/e/a", create=True).close()
    disk.remove_tree(f"{root}/d")
    assert disk.list(root) == []
    with pytest.raises(FileNotFoundError):
        disk.remove_tree(f"{root}/d")


def test_a_directory_can_be_renamed(disk: Disk, root: str) -> None:
    disk.make_dirs(f"{root}/d")
    disk.open(f"{root}/d/a", create=True).close()
    disk.rename(f"{root}/d", f"{root}/e")
    assert disk.list(f"{root}/e") == ["a"]


def test_space_is_reported(disk: Disk, root: str) -> None:
    assert 0 < disk.free_bytes(root) <= disk.total_bytes(root)


def test_times_are_milliseconds(disk: Disk, root: str) -> None:
    disk.open(f"{root}/a", create=True).close()
    assert disk.modified_ms(f"{root}/a") >= 0


def test_a_sync_that_fails_says_so(tmp_path: Path) -> None:
    """Its number alone does not: ENOSPC of a write has lost nothing."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SyncFailed) as caught:
        OsDisk().open(str(tmp_path / "pipe")).sync()
    assert caught.value.errno == errno.EINVAL
    disk = SimulatedDisk()
    disk.make_dirs("/data")
    disk.faults = [Fault("sync", "/data", errno.ENOSPC), Fault("sync_dir", "/data", errno.ENOSPC)]
    with pytest.raises(SyncFailed) as caught:
        disk.open("/data/a", create=True).sync()
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(SyncFailed):
        disk.sync_dir("/data")

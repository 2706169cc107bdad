"""Only their owner reads the files of a broker, whatever the umask is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.log.os_disk import OsDisk, make_private_directories


@pytest.fixture(autouse=True)
def generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_files_and_all_directories_above_them_are_private(tmp_path: Path) -> None:
    disk = OsDisk()
    disk.make_dirs(f"{tmp_path}/a/b/c")
    disk.open(f"{tmp_path}/a/b/c/file", create=True).close()
    assert [mode(tmp_path / name) for name in ("a", "a/b", "a/b/c", "a/b/c/file")] == [0o700] * 3 + [0o600]


def test_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a/file").touch(mode=0o644)
    disk = OsDisk()
    disk.make_dirs(f"{tmp_path}/a")
    disk.make_dirs(f"{tmp_path}/a/")
    disk.open(f"{tmp_path}/a/file", create=True).close()
    assert (mode(tmp_path / "a"), mode(tmp_path / "a/file")) == (0o755, 0o644)


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        make_private_directories(f"{tmp_path}/a")
    with pytest.raises(NotADirectoryError):
        make_private_directories(f"{tmp_path}/a/b")


def test_a_place_where_nothing_can_be_made_ends_it() -> None:
    with pytest.raises(FileNotFoundError):
        make_private_directories("/proc/no/such")


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_private_directories("x/y")
    assert mode(tmp_path / "x/y") == 0o700

"""Control files: whole or not at all, and of two creators one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.spark.lake import locks
from headrace.spark.lake.files import LocalFiles, files_for, for_people, is_local


def test_a_file_is_created_once(tmp_path: Path) -> None:
    files = LocalFiles()
    path = f"file://{tmp_path}/deep/file"
    assert files.read(path) is None
    assert files.create(path, "one")
    assert not files.create(path, "two")
    assert files.read(path) == "one"
    files.replace(path, "three")
    assert files.read(path) == "three"
    assert files.names(f"{tmp_path}/deep") == ["file"]


def test_moving_again_is_no_error(tmp_path: Path) -> None:
    files = LocalFiles()
    files.create(f"{tmp_path}/a", "x")
    assert files.move(f"{tmp_path}/a", f"{tmp_path}/b/c")
    assert not files.move(f"{tmp_path}/a", f"{tmp_path}/b/c")
    assert files.sizes(f"{tmp_path}/b") == {"c": 1}
    assert files.sizes(str(tmp_path)) == {}
    files.remove(f"{tmp_path}/b")
    files.remove(f"{tmp_path}/b")
    assert files.names(f"{tmp_path}/b") == []


def test_what_was_not_written_whole_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    files = LocalFiles()
    (tmp_path / ".killed").write_text("")
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            files.create(f"{tmp_path}/commit", "x")
    assert files.names(str(tmp_path)) == []
    assert [each.name for each in tmp_path.iterdir()] == [".killed"]


def test_people_are_told_of_paths_that_a_shell_takes() -> None:
    assert for_people("file:///data/a%20lake") == "/data/a lake"
    assert for_people("s3a://bucket/lake") == "s3a://bucket/lake"


def test_a_place_elsewhere_needs_a_session() -> None:
    assert not is_local("s3a://bucket")
    with pytest.raises(ValueError, match="no session"):
        files_for("s3a://bucket", None)


def test_a_name_with_odd_characters_is_the_same_for_spark_and_for_python(tmp_path: Path) -> None:
    assert LocalFiles.path(f"file://{tmp_path}/a%20b") == tmp_path / "a b"


def test_one_driver_for_each_state(tmp_path: Path) -> None:
    with (
        locks.held(f"file://{tmp_path}", "run"),
        pytest.raises(locks.Taken, match=r"process \d+ already does"),
        locks.held(f"file://{tmp_path}", "run"),
    ):
        pass
    with locks.held(f"file://{tmp_path}", "run"), locks.held(f"file://{tmp_path}", "maintain"):
        pass


_TRY = """
import fcntl, sys
with open(sys.argv[1], "a+") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(3)
"""


def test_commits_of_one_process_go_together_and_others_wait(tmp_path: Path) -> None:
    state = f"file://{tmp_path}"

    def another_process() -> int:
        return subprocess.run(
            [sys.executable, "-c", _TRY, f"{tmp_path}/tables/t.lock"], check=False
        ).returncode

    with locks.turn(state, "t"):
        with locks.turn(state, "t"), locks.turn(state, "other"):
            pass
        assert another_process() == 3
    assert another_process() == 0

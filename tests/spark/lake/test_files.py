"""Control files through Hadoop's file systems behave as those that Python writes itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.spark.lake.files import Files, HadoopFiles, LocalFiles


@pytest.fixture(params=["python", "hadoop"])
def files(request: pytest.FixtureRequest, spark: SparkSession) -> Files:
    return LocalFiles() if request.param == "python" else HadoopFiles(spark)


def test_a_file_is_whole_or_not_there(files: Files, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/deep/file"
    assert files.read(path) is None
    assert files.create(path, "one")
    assert not files.create(path, "two")
    assert files.read(path) == "one"
    files.replace(path, "drei €")
    assert files.read(path) == "drei €"
    files.replace(f"file://{tmp_path}/deep/other", "new")
    assert files.names(f"file://{tmp_path}/deep") == ["file", "other"]
    left = [each.name for each in (tmp_path / "deep").iterdir() if not each.name.endswith(".crc")]
    assert sorted(left) == ["file", "other"]


def test_what_a_kill_left_half_written_is_no_file(files: Files, tmp_path: Path) -> None:
    (tmp_path / ".commit.abc").write_text("")
    assert files.names(f"file://{tmp_path}") == []


def test_moving_and_removing_again_is_no_error(files: Files, tmp_path: Path) -> None:
    there = f"file://{tmp_path}"
    files.create(f"{there}/a", "x")
    assert files.move(f"{there}/a", f"{there}/b/c")
    assert not files.move(f"{there}/a", f"{there}/b/c")
    assert files.sizes(f"{there}/b")["c"] == 1
    files.remove(f"{there}/b")
    files.remove(f"{there}/b")
    assert files.names(f"{there}/b") == []
    assert files.names(f"{there}/nowhere") == []

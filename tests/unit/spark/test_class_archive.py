"""Which archive of Spark's classes suits, and what one is told that cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark import class_archive


def _java(directory: Path, name: str) -> Path:
    java = directory / name / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'no such thing as a heap' >&2\nexit 1\n")
    java.chmod(0o755)
    return java


def test_without_an_archive_java_is_told_nothing(tmp_path: Path) -> None:
    assert class_archive.options(tmp_path) == ""


def test_the_archive_lies_beside_the_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SPARK_JARS", str(tmp_path))
    archive = class_archive.path()
    assert archive.parent == tmp_path
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in class_archive.options(tmp_path)


def test_another_java_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for name in ("17", "21"):
        monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path, name).parents[1]))
        found.add(class_archive.path(tmp_path))
    assert len(found) == 2


def test_a_spark_that_does_not_start_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path, "broken").parents[1]))
    with pytest.raises(class_archive.NoArchive, match="headrace spark doctor"):
        class_archive.make(tmp_path / "jars")
    assert not list((tmp_path / "jars").glob("*.jsa"))
    assert class_archive.options(tmp_path / "jars") == ""

from __future__ import annotations

import os
import socket
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from headrace.spark import doctor, jars


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def java_home(directory: Path, version: str) -> dict[str, str]:
    """A java that only tells its version, on standard error as the real one does."""
    script(directory / "bin" / "java", f"""echo 'openjdk version "{version}" 2025-04-15' >&2""")
    return {"JAVA_HOME": str(directory), "PATH": os.environ["PATH"]}


def jar_directory(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    for jar in jars.needed():
        with zipfile.ZipFile(directory / jar.file_name, "w") as file:
            file.writestr("a", "b")
    return directory


@pytest.mark.parametrize("version", ["17.0.15", "17", "21.0.7+6"])
def test_java_that_spark_runs_on(version: str, tmp_path: Path) -> None:
    finding = doctor.check_java(java_home(tmp_path, version))
    assert finding.ok
    assert finding.found.startswith(version)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "25"])
def test_another_java_is_named_with_what_to_install(version: str, tmp_path: Path) -> None:
    finding = doctor.check_java(java_home(tmp_path, version))
    assert not finding.ok
    assert "17 or 21" in finding.found
    assert "openjdk-17" in finding.advice


def test_a_wrong_java_home_is_wrong_although_path_has_a_java(tmp_path: Path) -> None:
    """Spark looks nowhere else once JAVA_HOME is set."""
    right = script(tmp_path / "path" / "java", """echo 'version "17.0.1"' >&2""").parent
    assert doctor.check_java({"PATH": str(right)}).ok
    finding = doctor.check_java({"PATH": str(right), "JAVA_HOME": str(tmp_path / "nowhere")})
    assert not finding.ok
    assert "nowhere" in finding.found


@pytest.mark.parametrize("text", ["exit 1", "echo hello"])
def test_a_java_that_says_nothing_of_itself(text: str, tmp_path: Path) -> None:
    script(tmp_path / "java", text)
    assert "does not tell its version" in doctor.check_java({"PATH": str(tmp_path)}).found


def test_no_java_at_all(tmp_path: Path) -> None:
    finding = doctor.check_java({"PATH": str(tmp_path)})
    assert (finding.ok, finding.found) == (False, "no java in PATH")


def test_an_old_python() -> None:
    assert doctor.check_python((3, 11, 0)).ok
    assert not doctor.check_python((3, 10, 14)).ok


def test_packages_of_this_environment_will_do() -> None:
    assert [finding for name in ("pyspark", "pandas") if not (finding := doctor.check_package(name)).ok] == []


def test_a_package_that_is_missing_or_too_new_is_told_with_the_command() -> None:
    def nothing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    missing = doctor.check_package("pyspark", nothing)
    assert (missing.ok, missing.found) == (False, "not installed")
    assert missing.advice == "pip install 'headrace[spark]'"
    new = doctor.check_package("pandas", lambda name: "3.0.1")
    assert not new.ok
    assert "pandas<3" in new.found


def test_another_spark_in_spark_home(tmp_path: Path) -> None:
    assert doctor.check_spark_home({}).ok
    assert not doctor.check_spark_home({"SPARK_HOME": str(tmp_path)}).ok
    (tmp_path / "jars").mkdir()
    core = tmp_path / "jars" / "spark-core_2.13-4.1.3.jar"
    core.touch()
    assert doctor.check_spark_home({"SPARK_HOME": str(tmp_path)}).ok
    core.rename(core.with_name("spark-core_2.12-3.5.6.jar"))
    finding = doctor.check_spark_home({"SPARK_HOME": str(tmp_path)})
    assert not finding.ok
    assert "Spark 3.5.6" in finding.found


def test_the_python_of_executors_is_asked_itself(tmp_path: Path) -> None:
    assert doctor.check_worker_python({}).ok
    assert doctor.check_worker_python({"PYSPARK_PYTHON": sys.executable, "PATH": os.environ["PATH"]}).ok
    other = """echo '{"version": [3, 9, 1], "packages": {}}'"""
    bare = f"""echo '{{"version": {list(sys.version_info[:3])}, "packages": {{"pandas": "2.3.3"}}}}'"""
    for text, said in (
        (other, "is Python 3.9.1"),
        (bare, "has no fastavro"),
        ("echo no", "does not answer as a Python does"),
        ("exit 3", "does not answer as a Python does"),
    ):
        python = script(tmp_path / "python", text)
        finding = doctor.check_worker_python({"PYSPARK_PYTHON": str(python)})
        assert not finding.ok
        assert said in finding.found
        assert sys.executable in finding.advice
    gone = doctor.check_worker_python({"PYSPARK_PYTHON": str(tmp_path / "none")})
    assert "is not there" in gone.found


def test_jars_that_are_missing_or_were_cut_short(tmp_path: Path) -> None:
    whole = jar_directory(tmp_path / "jars")
    assert doctor.check_jars(whole).ok
    first, second = (whole / jar.file_name for jar in jars.needed()[:2])
    first.write_bytes(first.read_bytes()[:40])
    damaged = doctor.check_jars(whole)
    assert not damaged.ok
    assert f"damaged in {whole}: {first.name}" in damaged.found
    second.unlink()
    lacking = doctor.check_jars(whole)
    assert f"lacks 1 of {len(jars.needed())}: {second.name}" in lacking.found
    assert lacking.advice.startswith(f"headrace spark jars --directory {whole}")


def test_a_host_that_does_not_know_its_own_name() -> None:
    def unknown(name: str) -> str:
        raise socket.gaierror(-2, "Name or service not known")

    assert doctor.check_host_name({}, lambda name: "10.0.0.1").ok
    assert "SPARK_LOCAL_IP" in doctor.check_host_name({}, unknown).advice
    assert doctor.check_host_name({"SPARK_LOCAL_IP": "127.0.0.1"}, unknown).ok


def test_no_round_trip_is_tried_while_something_is_wrong(tmp_path: Path) -> None:
    findings = list(doctor.examine(jar_directory=tmp_path, bootstrap="127.0.0.1:1"))
    assert findings[-1] == ("round trip", False, "not tried", "repair what is wrong above, then ask again")
    # A machine may have no Java, and no name that it knows itself.
    assert [
        each.subject for each in findings if not each.ok and each.subject not in ("java", "host name")
    ] == ["jars", "round trip"]

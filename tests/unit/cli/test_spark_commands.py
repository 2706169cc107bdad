from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.spark import jars


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["spark", *args], prog_name="headrace")


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """As many jars as are needed, with nothing in them."""
    for jar in jars.needed():
        with zipfile.ZipFile(tmp_path / jar.file_name, "w") as file:
            file.writestr("a", "b")
    return tmp_path


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `mvn` that does what its script says; nothing else is in PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin" / "mvn"


def test_jars_that_are_there_are_listed_and_maven_is_not_asked(whole: Path, maven: Path) -> None:
    result = run("jars", "--directory", str(whole))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [str(whole / jar.file_name) for jar in jars.needed()]
    assert f"export HEADRACE_SPARK_JARS={whole}" in result.stderr
    document = json.loads(run("jars", "--directory", str(whole), "--json").stdout)
    assert document["brought"] == 0
    assert len(document["jars"]) == len(jars.needed())


def test_maven_brings_what_is_missing(tmp_path: Path, maven: Path) -> None:
    target = tmp_path / "target"
    touched = " ".join(jar.file_name for jar in jars.needed())
    maven.write_text(f'#!/bin/sh\nfor name in {touched}; do : > "{target}/$name"; done\n')
    maven.chmod(0o755)
    result = run("jars", "--directory", str(target), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["brought"] == len(jars.needed())


def test_without_maven_it_is_said_what_to_do(tmp_path: Path, maven: Path) -> None:
    result = run("jars", "--directory", str(tmp_path / "target"))
    assert result.exit_code == 1
    assert "apt-get install maven" in result.stderr


def test_what_maven_says_is_passed_on(tmp_path: Path, maven: Path) -> None:
    maven.write_text("#!/bin/sh\necho '[ERROR] no such mirror'\nexit 1\n")
    maven.chmod(0o755)
    result = run("jars", "--directory", str(tmp_path / "target"))
    assert result.exit_code == 1
    assert "no such mirror" in result.stderr


def test_the_doctor_says_ok_for_each_or_what_to_do(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("""#!/bin/sh\necho 'openjdk version "17.0.1"' >&2\n""")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    well = run("doctor", "--directory", str(whole))
    assert well.exit_code == 0, well.output
    assert all(line.startswith("ok ") for line in well.stdout.splitlines())
    assert well.stderr == "ready\n"

    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    ill = run("doctor", "--directory", str(whole))
    assert ill.exit_code == 1
    first, second = ill.stdout.splitlines()[:2]
    assert first.startswith("not ok  java ")
    assert second.strip().startswith("do: install a JDK 17")
    assert ill.stderr == "1 to repair\n"

    document = json.loads(run("doctor", "--directory", str(whole), "--json").stdout)
    assert not document["ok"]
    assert [finding["subject"] for finding in document["findings"] if not finding["ok"]] == ["java"]


def test_the_doctor_comes_without_pyspark() -> None:
    """Modules that are None cannot be imported: whoever tries ends with an error."""
    program = (
        "import sys; sys.modules.update(pyspark=None, pandas=None, pyarrow=None)\n"
        "from headrace.cli.main import cli\n"
        "cli.main(['spark', 'doctor', '--directory', '/nowhere'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert ran.returncode == 1
    assert "headrace spark jars --directory /nowhere" in ran.stdout
    assert "Traceback" not in ran.stderr

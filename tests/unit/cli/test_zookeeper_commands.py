"""`headrace zookeeper jars`. What it shares with `headrace spark jars` is tried there."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.testing.zookeeper_jars import JARS


def test_what_maven_has_brought_is_what_a_server_starts_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    maven = tmp_path / "bin" / "mvn"
    target = tmp_path / "target"
    names = " ".join(jar.file_name for jar in JARS.needed())
    maven.write_text(f'#!/bin/sh\nfor name in {names}; do : > "{target}/$name"; done\n')
    maven.chmod(0o755)
    result = CliRunner().invoke(cli, ["zookeeper", "jars", "--directory", str(target)], prog_name="headrace")
    assert result.exit_code == 0, result.output
    assert str(target / "zookeeper-3.9.4.jar") in result.stdout.splitlines()
    assert f"commands and tests find them with: export HEADRACE_ZOOKEEPER_JARS={target}" in result.stderr

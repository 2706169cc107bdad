"""A build that was asked to compile and cannot fails: nobody would notice a plain wheel in its place."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ONE_MODULE = "core/timers"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """As much of the project as a build needs, of which one module is to be compiled."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    hook = (ROOT / "hatch_build.py").read_text()
    shortened, count = re.subn(r"(?ms)^COMPILED = \(.*?^\)", f'COMPILED = ("{ONE_MODULE}",)', hook)
    assert count == 1
    (folder / "hatch_build.py").write_text(shortened)
    return folder


def build(project: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """How it ended, and which wheels there are."""
    wheels = project / "wheels"
    done = subprocess.run(
        ["uv", "build", "--wheel", "--out-dir", str(wheels), str(project)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "HEADRACE_OPTIMISE": "0", **environment},
    )
    return done, [file.name for file in wheels.glob("*.whl")]


def test_without_a_compiler(project: Path) -> None:
    done, wheels = build(project, HEADRACE_COMPILE="1", CC="/nowhere/cc")
    assert done.returncode != 0
    assert "there is no C compiler (/nowhere/cc)" in done.stderr
    assert wheels == []


def test_with_a_compiler_that_fails(project: Path) -> None:
    failing = shutil.which("false")
    assert failing is not None
    done, wheels = build(project, HEADRACE_COMPILE="1", CC=failing)
    assert done.returncode != 0
    assert wheels == []


def test_with_a_module_that_cannot_be_compiled(project: Path) -> None:
    module = project / "src" / "headrace" / f"{ONE_MODULE}.py"
    module.write_text(module.read_text() + "\nnumber: int = 'no number'\n")
    done, wheels = build(project, HEADRACE_COMPILE="1")
    assert done.returncode != 0
    assert "Incompatible types in assignment" in done.stdout + done.stderr
    assert wheels == []


def test_with_what_it_needs(project: Path) -> None:
    """The other tests of this file fail for the reason that they say, and for no other."""
    done, (wheel,) = build(project, HEADRACE_COMPILE="1")
    assert done.returncode == 0, done.stderr
    assert "-none-any" not in wheel


def test_unasked_it_is_plain(project: Path) -> None:
    done, (wheel,) = build(project, HEADRACE_COMPILE="", CC="/nowhere/cc")
    assert done.returncode == 0, done.stderr
    assert wheel.endswith("-py3-none-any.whl")

"""What can be tagged as a release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from release.check import problems

CHANGES = "# Changelog\n\n## 1.2.0 (2026-11-18)\n\n- new\n\n## 1.1.0 (2026-10-18)\n"


def git(project: Path, *arguments: str) -> None:
    known = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(
        ["git", "-C", str(project), *known, *arguments], check=True, capture_output=True, timeout=60
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One that can be released."""
    (tmp_path / "src" / "headrace").mkdir(parents=True)
    (tmp_path / "src" / "headrace" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "headrace"\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(project: Path) -> None:
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--allow-empty", "--message", "release: all")


def test_all_is_well(project: Path) -> None:
    assert problems(project) == []


def test_a_version_without_its_changes(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(CHANGES.replace("## 1.2.0 (2026-11-18)", "## Unreleased"))
    commit(project)
    (problem,) = problems(project)
    assert "Unreleased: name it 1.2.0" in problem


def test_a_command_that_would_say_another_version(project: Path) -> None:
    (project / "src" / "headrace" / "__init__.py").write_text('__version__ = "1.1.0"\n')
    commit(project)
    (problem,) = problems(project)
    assert problem == "pyproject.toml says 1.2.0, headrace/__init__.py 1.1.0"


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new.py"])
def test_what_is_not_committed(project: Path, name: str) -> None:
    with (project / name).open("a") as file:
        file.write("# more\n")
    (problem,) = problems(project)
    assert name in problem


def test_a_tag_that_exists(project: Path) -> None:
    git(project, "tag", "v1.2.0")
    (problem,) = problems(project)
    assert problem == "the tag v1.2.0 exists already"

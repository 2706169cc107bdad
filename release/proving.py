"""Proves a wheel in fresh environments: that pip takes it, that it works, that the tests pass against it."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

from release.building import PLAIN, ROOT
from release.pythons import Failed, Python, run, uv

NOT_OF_A_WHEEL: Final = ("tests/unit/docs", "tests/unit/structure")
"""Tests of the checkout: its documents, and the shape of its sources."""


class Proof(NamedTuple):
    python: Python
    wheel: str
    kind: str
    """What `headrace --version` says."""
    tests: str
    """pytest's last line, or why it did not run."""


def prove(python: Python, wheels: Path, work: Path, *, workers: int) -> Proof:
    """pip chooses among everything in the folder; it must take the compiled one if there is one. Then that
    many processes run the tests; with none no test is run."""
    tag = f"-cp{python.minor.replace('.', '')}-"
    expected = [wheel.name for wheel in wheels.glob("*.whl") if tag in wheel.name]
    folder = _fresh(work / f"from-all-{python.minor}")
    environment = _installed(python, wheels, folder)
    version = _version(python, environment, folder)
    if ("(compiled," in version) != bool(expected):
        raise Failed(f"Python {python.version}: {version}, and there are {expected}")
    name = expected[0] if expected else next(wheels.glob(f"*-{PLAIN}")).name
    tests = _tested(python, environment, folder, workers) if workers else "not run"
    return Proof(python, name, version, tests)


def prove_plain(python: Python, wheels: Path, work: Path) -> Proof:
    """Where there is no compiled wheel: a folder that has the plain one alone."""
    folder = _fresh(work / f"from-plain-{python.minor}")
    (plain,) = wheels.glob(f"*-{PLAIN}")
    only = folder / "wheels"
    only.mkdir()
    shutil.copy(plain, only)
    version = _version(python, _installed(python, only, folder), folder)
    if "(plain," not in version:
        raise Failed(f"Python {python.version}: {version}, from the plain wheel")
    return Proof(python, plain.name, version, "not run")


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _installed(python: Python, wheels: Path, folder: Path) -> Path:
    """headrace from the folder alone, by pip itself; the packages that it needs from the index."""
    environment = folder / "venv"
    shared = [folder, wheels]
    python.run([python.executable, "-m", "venv", str(environment)], shared=shared)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-index", "--find-links", str(wheels), "--no-deps"]
    python.run([*pip, "install", *alone, "headrace"], shared=shared)
    # pip asks the index for what headrace names; headrace itself is there already.
    python.run([*pip, "install", "--find-links", str(wheels), "headrace"], shared=shared)
    python.run([*pip, "check"], shared=shared)
    return environment


def _version(python: Python, environment: Path, folder: Path) -> str:
    return python.run([str(environment / "bin" / "headrace"), "--version"], shared=[folder]).strip()


def _tested(python: Python, environment: Path, folder: Path, workers: int) -> str:
    """In a folder that has the tests and no sources: what they import is what was installed."""
    checkout = folder / "checkout"
    run(["git", "-C", str(ROOT), "archive", "--output", str(folder / "checkout.tar"), "HEAD"])
    with tarfile.open(folder / "checkout.tar") as archive:
        archive.extractall(checkout, filter="data")
    shutil.rmtree(checkout / "src")
    requirements = folder / "requirements.txt"
    run(
        [
            *(uv(), "export", "--quiet", "--locked", "--no-hashes", "--no-emit-project"),
            *("--project", str(ROOT), "--output-file", str(requirements)),
        ]
    )
    interpreter = str(environment / "bin" / "python")
    python.run(
        [uv(), "pip", "install", "--quiet", "--python", interpreter, "-r", str(requirements)], shared=[folder]
    )
    ignored = [part for name in NOT_OF_A_WHEEL for part in ("--ignore", name)]
    in_checkout = ["sh", "-c", 'cd "$0" && exec "$@"', str(checkout)]
    try:
        said = python.run(
            [
                *(*in_checkout, interpreter, "-m", "pytest", "-q", "-n", str(workers)),
                *("-p", "no:cacheprovider", "tests/unit", "tests/property", *ignored),
            ],
            shared=[folder],
        )
    except Failed as failure:
        (folder / "tests.txt").write_text(str(failure))
        return f"FAILED: {str(failure).strip().splitlines()[-1]}"
    (folder / "tests.txt").write_text(said)
    return said.strip().splitlines()[-1]

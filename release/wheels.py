"""The wheels of a release, built and proved: `poe release-wheels`.

    python -m release.wheels [--root FOLDER] [--python PATH] [--only MINOR] [--no-tests] [--workers N]

For each of the four Pythons that is here, a compiled wheel; beside them the sdist and the plain wheel. All
lie in `build/release`, where `results.md` says what was proved of each. A Python that is missing is named.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from release import building, proving
from release.proving import Proof
from release.pythons import MINORS, Failed, find

OUTPUT = building.ROOT / "build" / "release"


def main() -> int:
    parser = argparse.ArgumentParser(description="build the wheels of a release and prove them")
    parser.add_argument("--root", type=Path, action="append", default=[], help="a Debian root with a Python")
    parser.add_argument("--python", action="append", default=[], help="an executable")
    parser.add_argument("--only", action="append", default=[], help="a minor version, such as 3.12")
    parser.add_argument("--no-tests", action="store_true", help="build and install, and run no test")
    parser.add_argument("--workers", type=int, default=2, help="how many processes run the tests")
    options = parser.parse_args()
    try:
        proofs = _release(options)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    text = table(proofs)
    (OUTPUT / "results.md").write_text(text)
    print(text)
    return 1 if any("FAILED" in proof.tests for proof in proofs) else 0


def _release(options: argparse.Namespace) -> list[Proof]:
    pythons = find(options.python, options.root)
    pythons = [python for python in pythons if not options.only or python.minor in options.only]
    missing = [minor for minor in options.only or MINORS if minor not in {each.minor for each in pythons}]
    _say(
        f"Pythons: {', '.join(python.version for python in pythons)}; missing: {', '.join(missing) or 'none'}"
    )
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for old in (*OUTPUT.glob("*.whl"), *OUTPUT.glob("*.tar.gz")):
        old.unlink()
    sdist = building.build_sources(OUTPUT)
    for python in pythons:
        _say(f"compiling for Python {python.version}")
        _say(building.build_compiled(python, sdist, OUTPUT).name)
    proofs = []
    for python in pythons:
        _say(f"proving on Python {python.version}")
        proofs.append(proving.prove_plain(python, OUTPUT, OUTPUT / "proof"))
        workers = 0 if options.no_tests else options.workers
        proofs.append(proving.prove(python, OUTPUT, OUTPUT / "proof", workers=workers))
        _say(table(proofs[-2:]))
    return proofs


def table(proofs: list[Proof]) -> str:
    lines = ["| Python | Wheel that pip took | It says | Unit and property tests |", "|---|---|---|---|"]
    lines += [
        f"| {proof.python.version} | `{proof.wheel}` | `{proof.kind}` | {proof.tests} |" for proof in proofs
    ]
    return "\n".join(lines) + "\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

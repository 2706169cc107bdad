"""`python -m tests.hostile.fuzz.one TARGET [libFuzzer's options] CORPUS`: one target, guided by coverage."""

from __future__ import annotations

import sys

import atheris


def main() -> None:
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["headrace"]):
        from tests.hostile.fuzz import targets
    atheris.Setup(sys.argv, lambda data: targets.run(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()

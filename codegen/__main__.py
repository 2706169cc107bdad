"""`python -m codegen` writes the message modules; `python -m codegen --check` only compares them."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from codegen import jars, output


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare; exit 1 and name the files that differ")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        jars.fetch(Path(directory))
        files = output.generate(Path(directory))
    if not arguments.check:
        output.write(files)
        print(f"{len(files)} files written")
        return 0
    wrong = output.differences(files)
    for name in wrong:
        print(f"differs: {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""All use cases by their one command, one after the other, at full size: `poe examples`, or some by name.

Each decides by itself whether all is well. The seconds are told, and decide nothing: a machine may be busy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.apache_kafka import CACHE

_EXAMPLES: Final = Path(__file__).parents[2] / "examples"
NAMES: Final = ("messaging", "metrics", "event-sourcing", "sessions", "reprocessing", "shop")


def main(names: list[str]) -> int:
    told, failed = [], 0
    for name in names or NAMES:
        print(f"--- {name}", flush=True)
        began = time.monotonic()
        environment = {**os.environ, "HEADRACE_SPARK_JARS": str(CACHE / "spark-jars")}
        code = subprocess.run([str(_EXAMPLES / name / "run.sh")], env=environment, check=False).returncode
        told.append(
            f"{name}: {'ok' if code == 0 else f'FAILED with {code}'}, {time.monotonic() - began:.0f} s"
        )
        failed += code != 0
    print("\n".join(["---", *told]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

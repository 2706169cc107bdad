"""All use cases by their one command, one after the other, at full size: `poe examples`, or some by name.

Each decides by itself whether all is well. The seconds are told, and decide nothing: a machine may be busy.
So those of CPU stand beside them; what outlived its parent, as a JVM that was killed with it, is not in them.
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
        began, cpu = time.monotonic(), _cpu_seconds()
        environment = {**os.environ, "HEADRACE_SPARK_JARS": str(CACHE / "spark-jars")}
        code = subprocess.run([str(_EXAMPLES / name / "run.sh")], env=environment, check=False).returncode
        told.append(
            f"{name}: {'ok' if code == 0 else f'FAILED with {code}'}, {time.monotonic() - began:.0f} s,"
            f" {_cpu_seconds() - cpu:.0f} s of CPU"
        )
        failed += code != 0
    print("\n".join(["---", *told]))
    return 1 if failed else 0


def _cpu_seconds() -> float:
    """Of all processes that were started from here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""200 connectors on two workers, of which one is killed: `poe connect-fleet`.

    python -m tests.spark.connect.fleet --connectors 200

It prints, as JSON, how long it took until all run, how long `GET /connectors?expand=info&expand=status`
takes, and how long after a kill until a worker that lives runs all of them. It fails if that is more than
15 seconds, or the list takes more than 200 ms in the middle.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from headrace.spark import jars
from headrace.testing.connect import Workers
from tests.apache_kafka import CACHE
from tests.broker_process import HeadraceProcess

HEALED_SECONDS = 15.0
LIST_SECONDS = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=200)
    parser.add_argument("--lists", type=int, default=50)
    given = parser.parse_args()
    os.environ.setdefault(jars.DIRECTORY_VARIABLE, str(CACHE / "spark-jars"))
    with tempfile.TemporaryDirectory() as folder, HeadraceProcess(Path(folder) / "broker") as broker:
        found = _measured(Path(folder), broker.bootstrap, given.connectors, given.lists)
    print(json.dumps(found, indent=2))
    within = found["healed_s"] <= HEALED_SECONDS and found["list_median_ms"] <= LIST_SECONDS * 1000
    return 0 if within else 1


def _measured(folder: Path, bootstrap: str, count: int, lists: int) -> dict[str, Any]:
    source = folder / "in.txt"
    source.write_text("")
    with Workers(folder, bootstrap, workers=2) as workers:
        began = time.monotonic()
        for number in range(count):
            config = {"connector.class": "FileStreamSource", "file": str(source), "topic": f"t{number}"}
            workers.put(f"c{number}", config)
        put = time.monotonic() - began
        workers.wait(lambda: _running(workers) >= count, "all connectors to run")
        started = time.monotonic() - began
        times = sorted(_timed(workers) for _ in range(lists))
        spread = _spread(workers)
        victim = workers.workers[0].url.removeprefix("http://")
        workers.kill(0)
        killed = time.monotonic()
        workers.wait(lambda: _running(workers, victim) >= count, "the survivor to run all")
        healed = time.monotonic() - killed
        again = sorted(_timed(workers) for _ in range(lists))
    return {
        "connectors": count,
        "created_s": round(put, 1),
        "all_running_s": round(started, 1),
        "spread": spread,
        "list_median_ms": round(statistics.median(times) * 1000, 1),
        "list_slowest_ms": round(times[-1] * 1000, 1),
        "healed_s": round(healed, 1),
        "list_after_median_ms": round(statistics.median(again) * 1000, 1),
    }


def _all(workers: Workers) -> dict[str, Any]:
    found: dict[str, Any] = workers.ask("GET", "/connectors?expand=info&expand=status")
    return found


def _running(workers: Workers, without: str = "") -> int:
    states = [each.get("status", {}).get("connector", {}) for each in _all(workers).values()]
    return sum(each.get("state") == "RUNNING" and each.get("worker_id") != without for each in states)


def _timed(workers: Workers) -> float:
    began = time.monotonic()
    _all(workers)
    return time.monotonic() - began


def _spread(workers: Workers) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in _all(workers).values():
        worker = each["status"]["connector"]["worker_id"]
        found[worker] = found.get(worker, 0) + 1
    return found


if __name__ == "__main__":
    sys.exit(main())

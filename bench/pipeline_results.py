"""What `bench.lake` and `bench.sink` have recorded, as costs: the time that the same job takes."""

from __future__ import annotations

import json
import statistics
from typing import Any

from bench.chart import Row
from bench.results import DIRECTORY

LAKE = DIRECTORY / "pipeline-lake.json"
SINK = DIRECTORY / "pipeline-sink.json"


def lake(load: str, ours: str, theirs: str, label: str, target: float) -> Row:
    """One comparison of `bench.lake`, whose ratios and targets are of rates."""
    (row,) = [
        row
        for row in json.loads(LAKE.read_text())["rows"]
        if (row["load"], row["ours"], row["theirs"]) == (load, ours, theirs)
    ]
    return _as_time(label, row["ratio"], row["runs"], target)


def sink(broker: str, size: int, label: str, target: float) -> Row:
    """Ours by Spark's own, on the same broker. Run i of one was next to run i of the other."""
    runs = [run for run in json.loads(SINK.read_text()) if (run["target"], run["size"]) == (broker, size)]
    own, ours = (_seconds(runs, sink) for sink in ("kafka", "headrace"))
    rates = [theirs / our for our, theirs in zip(ours, own, strict=True)]
    return _as_time(label, statistics.median(rates), rates, target)


def _seconds(runs: list[dict[str, Any]], sink: str) -> list[float]:
    return [run["seconds"] for run in runs if run["sink"] == sink]


def _as_time(label: str, rate: float, rates: list[float], target: float) -> Row:
    spread = (1 / max(rates), 1 / min(rates))
    return Row(label, f"{rate:.2f} of the rate", 1 / rate, spread, 1 / target)

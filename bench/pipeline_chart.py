"""The chart of the pipeline: each job relative to Spark's own, and to the same job on Apache Kafka.

    python -m bench.pipeline_chart --lake bench/results/pipeline-lake.json \\
        --sink bench/results/pipeline-sink.json --output docs/img/bench-pipeline.png
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from bench.chart import COLOURS, legend, stacked

_HEADRACE, _KAFKA = "Headrace", "Apache Kafka"


class Bar(NamedTuple):
    label: str
    ratio: float
    low: float
    high: float
    target: float
    spread_counts: bool = False
    """Whether the target is reached if the runs lie on both sides of it."""

    @property
    def verdict(self) -> str:
        if self.ratio >= self.target:
            return "met"
        return "met within spread" if self.spread_counts and self.high >= self.target else "missed"


def of_lake(rows: list[dict[str, Any]]) -> tuple[list[Bar], list[Bar]]:
    """(the lake by the bare connector, Headrace by Apache Kafka)."""
    by_bare, by_kafka = [], []
    for row in rows:
        ours, theirs = row["ours"], row["theirs"]
        spread = (row["ratio"], min(row["runs"]), max(row["runs"]))
        if ours.startswith("lake") and theirs.startswith("bare"):
            by_bare.append(Bar(f"{row['load']}, {ours}", *spread, target=0.9))
        else:
            by_kafka.append(Bar(f"{row['load']}, {ours.split(' on ')[0]}", *spread, 1.0, spread_counts=True))
    return by_bare, by_kafka


def of_sink(runs: list[dict[str, Any]]) -> list[Bar]:
    bars = []
    for target, size, batches in dict.fromkeys(map(_case, runs)):
        same = [run for run in runs if _case(run) == (target, size, batches)]
        own, ours = ([run for run in same if run["sink"] == sink] for sink in ("kafka", "headrace"))
        ratios = [theirs["seconds"] / our["seconds"] for our, theirs in zip(ours, own, strict=True)]
        broker = _HEADRACE if target == "headrace" else _KAFKA
        in_batches = f"{batches} batch{'es' if batches > 1 else ''}"
        label = f"sink, {size} B, {in_batches}, on {broker}"
        bars.append(Bar(label, statistics.median(ratios), min(ratios), max(ratios), target=0.5))
    return bars


def _case(run: dict[str, Any]) -> tuple[str, int, int]:
    return run["target"], run["size"], run["batches"]


def draw(panels: list[tuple[str, list[Bar]]], path: Path) -> None:
    figure, axes = stacked([len(bars) for _, bars in panels])
    for (title, bars), (axis,) in zip(panels, axes, strict=True):
        _panel(axis, title, bars)
    figure.legend(handles=legend(), loc="outside upper center", ncols=6, frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _panel(axis: Any, title: str, bars: list[Bar]) -> None:
    for position, bar in enumerate(bars):
        axis.barh(position, bar.ratio, height=0.62, color=COLOURS[bar.verdict])
        axis.plot([bar.low, bar.high], [position, position], color="black", linewidth=1.2)
        axis.plot([bar.target] * 2, [position - 0.42, position + 0.42], color="#e09f3e", linewidth=3)
        axis.text(
            1.01, position, f"{bar.ratio:.2f}", va="center", fontsize=9, transform=axis.get_yaxis_transform()
        )
    axis.axvline(1.0, color="#333333", linewidth=1, linestyle="--", zorder=0)
    axis.set_yticks(range(len(bars)), [bar.label for bar in bars], fontsize=9)
    axis.set_ylim(len(bars) - 0.5, -0.5)
    axis.set_xlim(0, 1.02 * max(1.25, *(bar.high for bar in bars)))
    axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline_chart", description=__doc__)
    parser.add_argument("--lake", type=Path, required=True, help="what bench.lake has written")
    parser.add_argument("--sink", type=Path, required=True, help="what bench.sink has written")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    by_bare, by_kafka = of_lake(json.loads(given.lake.read_text())["rows"])
    sinks = of_sink(json.loads(given.sink.read_text()))
    panels = [
        ("The lake to Parquet, in units of the bare connector's rate", by_bare),
        ("The exactly-once sink, in units of Spark's own sink", sinks),
        ("Reading Headrace, in units of reading Apache Kafka", by_kafka),
    ]
    draw(panels, given.output)


if __name__ == "__main__":
    main()

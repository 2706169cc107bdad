"""The chart of a run: each quantity relative to Kafka's, with its target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from bench.quantity import Comparison
from bench.table import number

COLOURS = {"met": "#2a7f62", "met within spread": "#7fb069", "missed": "#c44536", "": "#6c7a89"}
WIDEST = 2.0
BAR_INCHES = 0.34


def draw(comparisons: Sequence[Comparison], path: Path, caption: str) -> None:
    lower = [one for one in comparisons if not one.quantity.higher_is_better]
    higher = [one for one in comparisons if one.quantity.higher_is_better]
    panels = [
        (rows, title)
        for rows, title in ((lower, "Cost: less is better"), (higher, "Throughput: more is better"))
        if rows
    ]
    if not panels:
        return
    figure, axes = stacked([len(rows) for rows, _ in panels])
    for (rows, title), (axis,) in zip(panels, axes, strict=True):
        _panel(axis, rows, title)
    axes[-1][0].set_xlabel("Headrace relative to Apache Kafka 4.3.1 (Kafka = 1)")
    figure.legend(handles=legend(), loc="outside upper center", ncols=6, frameon=False, fontsize=9)
    figure.supxlabel(caption, fontsize=8, color="#555555")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def stacked(bars: Sequence[int]) -> tuple[Any, Any]:
    """A figure with panels of so many bars each, one below the other."""
    return pyplot.subplots(
        len(bars),
        1,
        figsize=(12, 1.8 + sum(BAR_INCHES * count + 0.9 for count in bars)),
        gridspec_kw={"height_ratios": [count + 1 for count in bars]},
        squeeze=False,
        layout="constrained",
    )


def _panel(axis: Any, rows: Sequence[Comparison], title: str) -> None:
    widest = 1.25
    for position, one in enumerate(rows):
        low, high = one.spread
        shown = min(max(one.ratio, 0.0), WIDEST)
        widest = max(widest, min(high, WIDEST), shown)
        axis.barh(position, shown, height=0.62, color=COLOURS[one.verdict])
        if 0.0 <= low <= WIDEST:
            axis.plot([low, min(high, WIDEST)], [position, position], color="black", linewidth=1.2)
        target = one.relative_target
        if target is not None and 0.0 <= target <= WIDEST:
            axis.plot([target] * 2, [position - 0.42, position + 0.42], color="#e09f3e", linewidth=3)
        figures = (
            f"{one.ratio:5.2f}   {number(one.our_median)} : {number(one.their_median)} {one.quantity.unit}"
        )
        # The figures stand in a column of their own, right of the bars.
        axis.text(1.01, position, figures, va="center", fontsize=9, transform=axis.get_yaxis_transform())
    axis.axvline(1.0, color="#333333", linewidth=1, linestyle="--", zorder=0)
    axis.set_yticks(range(len(rows)), [f"{one.title}: {one.quantity.label}" for one in rows], fontsize=9)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlim(0, widest * 1.02)
    axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axis.text(1.01, -0.9, "ratio   Headrace : Kafka", fontsize=9, transform=axis.get_yaxis_transform())
    axis.spines[["top", "right"]].set_visible(False)


def legend() -> list[Any]:
    patch, line = matplotlib.patches.Patch, matplotlib.lines.Line2D
    return [
        patch(color=COLOURS["met"], label="target met"),
        patch(color=COLOURS["met within spread"], label="met within spread"),
        patch(color=COLOURS["missed"], label="target missed"),
        patch(color=COLOURS[""], label="no target"),
        line([], [], color="#e09f3e", linewidth=3, label="target"),
        line([], [], color="black", linewidth=1.2, label="spread of runs"),
    ]

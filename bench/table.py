"""The table of a run, as Markdown that also reads well on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from bench.quantity import Comparison

HEADINGS = ("Case", "Quantity", "Headrace", "Kafka", "Ratio", "Spread", "Target", "Verdict")
NOW_AND_BEFORE = ("Case", "Quantity", "Now", "Before", "Ratio", "Spread", "Change")
NUMBER_COLUMNS = range(2, 6)


def number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def row(comparison: Comparison, headings: Sequence[str] = HEADINGS) -> tuple[str, ...]:
    quantity = comparison.quantity
    low, high = comparison.spread
    figures = (
        comparison.title,
        f"{quantity.label}, {quantity.unit}",
        number(comparison.our_median),
        number(comparison.their_median),
        f"{comparison.ratio:.2f}",
        f"{low:.2f} to {high:.2f}",
    )
    if headings is NOW_AND_BEFORE:
        return (*figures, comparison.change)
    return (*figures, quantity.describe_target(), comparison.verdict)


def render(comparisons: Sequence[Comparison], headings: Sequence[str] = HEADINGS) -> str:
    rows = [tuple(headings), *(row(comparison, headings) for comparison in comparisons)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(headings))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if column in NUMBER_COLUMNS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * (width - 1) + (":" if column in NUMBER_COLUMNS else "-") for column, width in enumerate(widths)
    ]
    return "\n".join([line(headings), line(rule), *map(line, rows[1:])])

"""A chart of costs relative to another's: bars on a log axis around 1, coloured by better or worse.

It is SVG written by hand: pictures for a light and for a dark page differ in their colours alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from bench.quantity import Comparison
from bench.table import number

_WIDTH: Final = 760
_MARGIN: Final = 14
_PLOT_LEFT: Final = 34
_PLOT_RIGHT: Final = _WIDTH - 46
_TOP: Final = 92
_ROW: Final = 42
_BAR_TOP: Final = 21
_BAR: Final = 12
_TICKS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_LEAST_SPAN: Final = (0.5, 2.0)
_SAMPLE: Final = 16
_LETTER: Final = 6.4
"""About the width of a letter of the legend, whose font is the reader's."""


@dataclass(frozen=True)
class Theme:
    name: str
    paper: str
    ink: str
    faint: str
    line: str
    better: str
    worse: str


# Blue and orange of Okabe and Ito: apart for every kind of colour blindness, and in grey.
LIGHT: Final = Theme("light", "#ffffff", "#1f2328", "#59636e", "#d1d9e0", "#0072b2", "#d55e00")
DARK: Final = Theme("dark", "#0d1117", "#e6edf3", "#9198a1", "#3d444d", "#56b4e9", "#e69f00")
THEMES: Final = (LIGHT, DARK)


@dataclass(frozen=True)
class Row:
    """One cost as a multiple of the other's; less is better."""

    label: str
    figures: str
    ratio: float
    spread: tuple[float, float]
    target: float | None = None

    @property
    def kind(self) -> str:
        """Pale where neighbouring runs disagree about which side is better."""
        side = "better" if self.ratio <= 1.0 else "worse"
        low, high = self.spread
        return f"{side} open" if low < 1.0 < high else side

    @property
    def extremes(self) -> tuple[float, ...]:
        return (self.ratio, *self.spread, *(() if self.target is None else (self.target,)))


@dataclass(frozen=True)
class Chart:
    title: str
    reference: str
    rows: Sequence[Row]
    caption: str


def as_cost(comparison: Comparison, label: str, reference: str = "Kafka") -> Row:
    """A rate becomes the time that the same load takes, so that less is better in every row."""
    ratio, (low, high), target = comparison.ratio, comparison.spread, comparison.relative_target
    unit = f" {comparison.quantity.unit}" if comparison.quantity.unit else ""
    figures = f"{number(comparison.our_median)}{unit}, {reference} {number(comparison.their_median)}"
    if comparison.quantity.higher_is_better:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
        target = None if target is None else 1 / target
    return Row(label, figures, ratio, (low, high), target)


def of_run(comparisons: Sequence[Comparison], reference: str, caption: str) -> Chart:
    """All that a run has measured and that has a place on a log axis."""
    rows = [
        as_cost(one, f"{one.title}: {_cost_name(one)}")
        for one in comparisons
        if one.our_median > 0 and one.their_median > 0 and min(one.spread) > 0
    ]
    return Chart("Headrace beside Apache Kafka", reference, rows, caption)


def _cost_name(comparison: Comparison) -> str:
    label = comparison.quantity.label
    return f"time ({label})" if comparison.quantity.higher_is_better else label


def save(chart: Chart, path: Path, theme: Theme = LIGHT) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(draw(chart, theme) + "\n")


def draw(chart: Chart, theme: Theme) -> str:
    return _Drawing(chart, theme).svg()


class _Drawing:
    def __init__(self, chart: Chart, theme: Theme) -> None:
        self.chart = chart
        self.theme = theme
        self.begin, self.end = _domain(value for row in chart.rows for value in row.extremes)
        self.bottom = _TOP + _ROW * len(chart.rows)
        self.parts: list[str] = []

    def svg(self) -> str:
        height = self.bottom + 52
        spoken = f"{self.chart.title}. " + " ".join(
            f"{row.label}: {row.ratio:.2f} ({row.figures})." for row in self.chart.rows
        )
        self._text(_MARGIN, 27, "title", self.chart.title)
        self._text(
            _MARGIN, 48, "sub", f"In multiples of {self.chart.reference}, which is 1. Less is better: left."
        )
        self._legend(70)
        self._axis()
        for position, row in enumerate(self.chart.rows):
            self._row(row, _TOP + position * _ROW)
        self._text(_MARGIN, height - 10, "small", self.chart.caption)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}" role="img" aria-label="{escape(spoken, {chr(34): "&quot;"})}">\n'
            f"<style>{_style(self.theme)}</style>\n"
            f'<rect class="paper" width="{_WIDTH}" height="{height}" rx="6"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>"
        )

    def _x(self, ratio: float) -> float:
        share = (math.log(ratio) - math.log(self.begin)) / (math.log(self.end) - math.log(self.begin))
        return _PLOT_LEFT + share * (_PLOT_RIGHT - _PLOT_LEFT)

    def _text(self, x: float, y: float, kind: str, words: str) -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>')

    def _axis(self) -> None:
        for tick in _TICKS:
            if not self.begin <= tick <= self.end:
                continue
            x = self._x(tick)
            kind = "one" if tick == 1.0 else "grid"
            self.parts.append(
                f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP + 2}" y2="{self.bottom + 4}"/>'
            )
            self._text(x, self.bottom + 19, f"tick {kind}", _tick_name(tick))

    def _row(self, row: Row, top: float) -> None:
        one, end = self._x(1.0), self._x(row.ratio)
        middle = top + _BAR_TOP + _BAR / 2
        self._text(_MARGIN, top + 14, "label", row.label)
        self.parts.append(
            f'<text x="{_WIDTH - _MARGIN}" y="{top + 14:.1f}" class="figures">{escape(row.figures)}'
            f'<tspan class="ratio" dx="9">{row.ratio:.2f}</tspan></text>'
        )
        self.parts.append(
            f'<rect class="{row.kind}" x="{min(one, end):.1f}" y="{top + _BAR_TOP:.1f}" '
            f'width="{max(abs(end - one), 1.5):.1f}" height="{_BAR}" rx="2"/>'
        )
        low, high = (self._x(value) for value in row.spread)
        self._line(low, high, middle)
        if row.target is not None:
            self._mark(self._x(row.target), middle)

    def _line(self, low: float, high: float, y: float) -> None:
        for kind in ("halo", "spread"):
            self.parts.append(
                f'<line class="{kind}" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )

    def _mark(self, x: float, y: float) -> None:
        points = f"{x:.1f},{y - 5:.1f} {x + 4:.1f},{y:.1f} {x:.1f},{y + 5:.1f} {x - 4:.1f},{y:.1f}"
        self.parts.append(f'<polygon class="target" points="{points}"/>')

    def _legend(self, y: float) -> None:
        x = float(_MARGIN)
        rows = self.chart.rows
        kinds = {row.kind for row in rows}
        entries = [
            ("better", "better", any(row.ratio <= 1.0 for row in rows)),
            ("worse", "worse", any(row.ratio > 1.0 for row in rows)),
            ("better open", "pale: the runs disagree", any(kind.endswith("open") for kind in kinds)),
            ("spread", "spread of the runs", True),
            ("target", "our own target", any(row.target is not None for row in rows)),
        ]
        for kind, words, shown in entries:
            if not shown:
                continue
            if kind == "spread":
                self._line(x, x + _SAMPLE, y - 4)
            elif kind == "target":
                self._mark(x + _SAMPLE / 2, y - 4)
            else:
                self.parts.append(
                    f'<rect class="{kind}" x="{x:.1f}" y="{y - 10:.1f}" width="{_SAMPLE}" '
                    f'height="{_BAR}" rx="2"/>'
                )
            self._text(x + _SAMPLE + 6, y, "small", words)
            x += _SAMPLE + 26 + _LETTER * len(words)


def _domain(values: Iterable[float]) -> tuple[float, float]:
    """From the last tick below everything to the first above it, and from half to double at least."""
    every = (*values, *_LEAST_SPAN)
    begin = max((tick for tick in _TICKS if tick <= min(every) * 1.001), default=min(every))
    end = min((tick for tick in _TICKS if tick >= max(every) * 0.999), default=max(every))
    return begin, end


def _tick_name(tick: float) -> str:
    if tick == 1.0:
        return "1, the same"
    return f"1/{round(1 / tick)}" if tick < 1.0 else f"{tick:.0f} times"


def _style(theme: Theme) -> str:
    return (
        'text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; '
        f"font-size: 13px; fill: {theme.ink}; }} "
        f".label, .figures {{ paint-order: stroke; stroke: {theme.paper}; stroke-width: 5px; }} "
        ".title { font-size: 18px; font-weight: 600; } .label { font-size: 14px; } "
        f".sub, .small, .tick, .figures {{ fill: {theme.faint}; }} .small, .tick {{ font-size: 12px; }} "
        f".tick {{ text-anchor: middle; }} text.one {{ fill: {theme.ink}; }} "
        ".figures { text-anchor: end; } "
        f".ratio {{ font-size: 14px; font-weight: 700; fill: {theme.ink}; }} "
        f".paper {{ fill: {theme.paper}; }} "
        f".better {{ fill: {theme.better}; }} .worse {{ fill: {theme.worse}; }} "
        f".open {{ fill-opacity: 0.45; }} line.grid {{ stroke: {theme.line}; }} "
        f"line.one {{ stroke: {theme.ink}; stroke-width: 1.5; }} "
        f".halo {{ stroke: {theme.paper}; stroke-width: 3.5; }} "
        f".spread {{ stroke: {theme.ink}; stroke-width: 1.3; }} "
        f".target {{ fill: {theme.paper}; stroke: {theme.ink}; stroke-width: 1.3; }}"
    )

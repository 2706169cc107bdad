"""A picture of an audit: one row of bars for each tier, window by window, and below them what the audit says.

It is SVG by hand, so that a report is one file that any browser shows, with a tooltip for each window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from xml.sax.saxutils import escape

from headrace.audit.tally import NOTHING, Tally, total
from headrace.audit.verdict import Difference, Kind, State, Verdict, window_text

_WIDTH: Final = 1000
_LEFT: Final = 96
_RIGHT: Final = 24
_ROW: Final = 86
_BAR: Final = 62
_TOP: Final = 78
_COLUMNS_AT_MOST: Final = 240
_LISTED: Final = 6
_SIGNS: Final = {Kind.LOST: "−", Kind.DOUBLED: "+", Kind.ALTERED: "≠"}
#: The worst first: of windows that share a column, this one is shown.
_BY_WEIGHT: Final = (State.DIFFERENT, State.INCOMPLETE, State.OPEN, State.CERTIFIED)

#: Plain colours, and others where the reader prefers a dark page: not every viewer knows CSS variables.
STYLE: Final = """
.audit { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
.audit .title { font-size: 19px; font-weight: 600; fill: #1f2328; }
.audit .name { font-size: 13px; font-weight: 600; fill: #1f2328; }
.audit .list { font-size: 12.5px; fill: #1f2328; }
.audit .sub, .audit .tick, .audit .total { font-size: 12px; fill: #59636e; }
.audit .mark { font-size: 12px; font-weight: 700; fill: #cf222e; text-anchor: middle; }
.audit .axis { stroke: #d1d9e0; stroke-width: 1; }
.audit .paper { fill: #ffffff; } .audit .bar { fill: #5b8db8; } .audit .faint { fill: #b4cbe0; }
.audit .certified { fill: #2da44e; } .audit .different { fill: #cf222e; }
.audit .incomplete { fill: #d4a72c; } .audit .open { fill: #c4ccd4; }
@media (prefers-color-scheme: dark) {
.audit .title, .audit .name, .audit .list { fill: #e6edf3; }
.audit .sub, .audit .tick, .audit .total { fill: #9198a1; }
.audit .mark { fill: #f85149; } .audit .axis { stroke: #3d444d; } .audit .paper { fill: #0d1117; }
.audit .bar { fill: #4a83b5; } .audit .faint { fill: #2f4d68; } .audit .certified { fill: #3fb950; }
.audit .different { fill: #f85149; } .audit .incomplete { fill: #d29922; } .audit .open { fill: #565e67; }
}
"""


@dataclass(frozen=True)
class _Column:
    """One window, or several neighbours where there are too many for a column each."""

    start_ms: int
    end_ms: int
    verdicts: Sequence[Verdict]

    @property
    def state(self) -> State:
        states = {verdict.state for verdict in self.verdicts}
        return next(state for state in _BY_WEIGHT if state in states)

    def tally(self, tier: str) -> Tally:
        return total(verdict.tiers.get(tier, NOTHING) for verdict in self.verdicts)

    def differences(self, tier: str) -> list[Difference]:
        return [found for verdict in self.verdicts for found in verdict.differences if found.tier == tier]

    @property
    def tooltip(self) -> str:
        counts = ", ".join(f"{tier} {self.tally(tier).count:,}" for tier in tiers_of(self.verdicts))
        worst = min(self.verdicts, key=lambda verdict: _BY_WEIGHT.index(verdict.state))
        return f"{window_text(self.start_ms)}\n{counts}\n{worst.headline}"


def tiers_of(verdicts: Iterable[Verdict]) -> list[str]:
    """In the order of a record's way."""
    return list(dict.fromkeys(tier for verdict in verdicts for tier in verdict.tiers))


def summary(verdicts: Sequence[Verdict]) -> str:
    counts = {state: sum(verdict.state is state for verdict in verdicts) for state in _BY_WEIGHT}
    parts = [f"{counts[state]} {state}" for state in reversed(_BY_WEIGHT) if counts[state]]
    return f"{len(verdicts)} windows: " + ", ".join(parts)


def _columns(verdicts: Sequence[Verdict]) -> list[_Column]:
    ordered = sorted(verdicts, key=lambda verdict: verdict.window_ms)
    length = ordered[0].length_ms
    first, last = ordered[0].window_ms, ordered[-1].window_ms
    width = length * math.ceil(((last - first) // length + 1) / _COLUMNS_AT_MOST)
    grouped: dict[int, list[Verdict]] = {}
    for verdict in ordered:
        grouped.setdefault((verdict.window_ms - first) // width, []).append(verdict)
    return [
        _Column(first + at * width, first + (at + 1) * width, members)
        for at, members in sorted(grouped.items())
    ]


class _Drawing:
    def __init__(self, columns: Sequence[_Column], tiers: Sequence[str]) -> None:
        self.columns = columns
        self.tiers = tiers
        self.begin, self.end = columns[0].start_ms, columns[-1].end_ms
        self.peak = max((column.tally(tier).count for column in columns for tier in tiers), default=0) or 1
        self.parts: list[str] = []

    def x(self, moment_ms: int) -> float:
        share = (moment_ms - self.begin) / (self.end - self.begin)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def text(self, x: float, y: float, kind: str, words: str, more: str = "") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{more}>{escape(words)}</text>')

    def box(self, column: _Column, y: float, height: float, kind: str) -> None:
        left, right = self.x(column.start_ms), self.x(column.end_ms)
        gap = min(2.0, (right - left) * 0.25)
        self.parts.append(
            f'<rect x="{left:.1f}" y="{y:.1f}" width="{right - left - gap:.1f}" height="{height:.1f}" '
            f'rx="1" class="{kind}"><title>{escape(column.tooltip)}</title></rect>'
        )

    def tier(self, at: int, tier: str) -> None:
        base = _TOP + at * _ROW + _BAR
        self.text(8, base - 14, "name", tier)
        self.text(8, base + 2, "total", f"{sum(column.tally(tier).count for column in self.columns):,}")
        for column in self.columns:
            height = max(column.tally(tier).count / self.peak * (_BAR - 14), 0.8)
            differences = column.differences(tier)
            kind = "different" if differences else "faint" if column.state is State.OPEN else "bar"
            self.box(column, base - height, height, kind)
            if differences:
                self.text(
                    (self.x(column.start_ms) + self.x(column.end_ms)) / 2,
                    base - height - 4,
                    "mark",
                    _mark(differences),
                )
        self.parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{base}" y2="{base}" class="axis"/>')

    def verdict_strip(self, y: float) -> None:
        self.text(8, y + 12, "name", "verdict")
        for column in self.columns:
            self.box(column, y, 16, column.state.value)

    def ticks(self, y: float) -> None:
        count = 6
        for number in range(count + 1):
            moment = self.begin + (self.end - self.begin) * number // count
            anchor = ("start", "middle", "end")[0 if number == 0 else 2 if number == count else 1]
            self.text(
                self.x(moment), y, "tick", _clock(moment, self.end - self.begin), f' text-anchor="{anchor}"'
            )

    def legend(self, y: float) -> None:
        x = float(_LEFT)
        for state in reversed(_BY_WEIGHT):
            self.parts.append(
                f'<rect x="{x:.0f}" y="{y - 10}" width="11" height="11" rx="2" class="{state}"/>'
            )
            self.text(x + 16, y, "sub", state)
            x += 40 + 7 * len(state)


def _mark(differences: Sequence[Difference]) -> str:
    sign = _SIGNS[differences[0].kind]
    by = sum(abs(found.found - found.expected) for found in differences)
    return f"{sign}{by or ''}"


def _clock(moment_ms: int, span_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return window_text(moment_ms)
    if span_ms > 2 * 86_400_000:
        return moment.strftime("%d %b %H:%M")
    return moment.strftime("%H:%M" if span_ms > 3_600_000 else "%H:%M:%S")


def draw(topic: str, verdicts: Sequence[Verdict]) -> str:
    """The chart of one topic, as one SVG element with its own style."""
    columns = _columns(verdicts)
    tiers = tiers_of(verdicts)
    drawing = _Drawing(columns, tiers)
    drawing.text(8, 28, "title", topic)
    first, last = window_text(drawing.begin), window_text(drawing.end)
    drawing.text(8, 48, "sub", f"{first} to {last} · {summary(verdicts)}")
    for at, tier in enumerate(tiers):
        drawing.tier(at, tier)
    strip = _TOP + len(tiers) * _ROW + 4
    drawing.verdict_strip(strip)
    drawing.ticks(strip + 34)
    drawing.legend(strip + 60)
    listed = noteworthy(verdicts)
    for at, verdict in enumerate(listed[:_LISTED]):
        words = f"{window_text(verdict.window_ms)}  {verdict.headline}"
        drawing.parts.append(
            f'<circle cx="{_LEFT + 5}" cy="{strip + 84 + at * 20}" r="4" class="{verdict.state}"/>'
        )
        drawing.text(_LEFT + 16, strip + 88 + at * 20, "list", words)
    rest = len(listed) - _LISTED
    if rest > 0:
        drawing.text(_LEFT + 16, strip + 88 + _LISTED * 20, "sub", f"and {rest} more")
    height = strip + 88 + (min(len(listed), _LISTED) + (rest > 0)) * 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'class="audit" role="img" aria-label="{escape(topic, {chr(34): "&quot;"})}: {summary(verdicts)}">'
        f'<style>{STYLE}</style><rect class="paper" width="{_WIDTH}" height="{height}"/>'
        f"{''.join(drawing.parts)}</svg>"
    )


def noteworthy(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """What a person should look at: differences, then what is incomplete, by time."""
    bad = [verdict for verdict in verdicts if verdict.state in (State.DIFFERENT, State.INCOMPLETE)]
    return sorted(bad, key=lambda verdict: (_BY_WEIGHT.index(verdict.state), verdict.window_ms))


def page(charts: Sequence[str], made_ms: int) -> str:
    """One HTML file with nothing outside it."""
    body = "\n".join(f"<figure>{chart}</figure>" for chart in charts)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Headrace audit</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 24px auto; max-width: 1048px; font-family: system-ui, sans-serif;
  background: #fff; color: #59636e; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0d1117; color: #9198a1; }} }}
figure {{ margin: 0 0 24px; }} svg {{ max-width: 100%; height: auto; }}
footer {{ font-size: 12px; margin: 0 8px; }}
</style></head><body>
{body}
<footer>Drawn {window_text(made_ms)}. Records by topic and window of event time.</footer>
</body></html>
"""

"""Lines and areas over time, as paths of SVG. A gap stays a gap: what nobody saw is not drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Drawing(NamedTuple):
    line: str
    """The `d` of a path."""
    fill: str
    top: float
    """The value at the upper edge."""
    last: tuple[float, float] | None
    """Where the newest value is drawn."""


def sparkline(
    values: Sequence[float | None], width: float, height: float, top: float | None = None
) -> Drawing:
    """From zero at the lower edge to the largest value, or to `top`. Half a pixel remains for the stroke."""
    known = [value for value in values if value is not None]
    highest = max(known, default=0.0) if top is None else top
    scale = (height - 2) / highest if highest > 0 else 0.0
    step = width / max(1, len(values) - 1)
    line, fill = [], []
    last = None
    for run in _runs(values):
        points = [(at * step, height - 1 - min(value, highest) * scale) for at, value in run]
        if len(points) == 1:  # one value alone would have no length
            points.append((points[0][0] + min(1.0, step), points[0][1]))
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        line.append(f"M{path}")
        fill.append(f"M{points[0][0]:.1f} {height:g}L{path}L{points[-1][0]:.1f} {height:g}Z")
        last = points[-1]
    return Drawing("".join(line), "".join(fill), highest, last)


def _runs(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    run: list[tuple[int, float]] = []
    for at, value in enumerate(values):
        if value is None:
            if run:
                yield run
            run = []
        else:
            run.append((at, value))
    if run:
        yield run


def area(several: Sequence[Sequence[float | None]], width: float, height: float) -> list[Drawing]:
    """Several lines with one scale."""
    top = max((value for values in several for value in values if value is not None), default=0.0)
    return [sparkline(values, width, height, top) for values in several]

"""A channel that is as wide at each stage as what flows there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LEAST = 1.5
"""Of what flows at all: it must be seen."""


class Ribbon(NamedTuple):
    path: str
    """The `d` of a filled path; empty where nothing is known of two stages beside each other."""
    gaps: Sequence[tuple[float, float]]
    """From where to where nothing can be told: to be drawn as a thin broken line."""


def ribbon(widths: Sequence[float | None], top: float, length: float, height: float) -> Ribbon:
    """`widths` at stages in equal distances; `top` is the value that fills the whole height."""
    step = length / len(widths)
    halves = [None if value is None else _half(value, top, height) for value in widths]
    middle = height / 2
    pieces, gaps = [], []
    for at, half in enumerate(halves):
        begin, end = at * step, (at + 1) * step
        if half is None:
            gaps.append((begin, end))
            continue
        # Each stage is flat in its middle, and bends into the next one.
        before = halves[at - 1] if at else half
        left = half if before is None else (half + before) / 2
        after = halves[at + 1] if at + 1 < len(halves) else half
        right = half if after is None else (half + after) / 2
        pieces.append(_piece(begin, end, middle, left, half, right))
    return Ribbon("".join(pieces), gaps)


def _half(value: float, top: float, height: float) -> float:
    if value <= 0:
        return 0.25
    share = min(1.0, value / top) if top > 0 else 0.0
    return max(LEAST, share * height) / 2


def _piece(begin: float, end: float, middle: float, left: float, half: float, right: float) -> str:
    quarter = (end - begin) / 4
    a, b, c = begin + quarter, begin + 2 * quarter, begin + 3 * quarter
    upper = (
        f"M{begin:.1f} {middle - left:.2f}C{a:.1f} {middle - left:.2f} {a:.1f} {middle - half:.2f} "
        f"{b:.1f} {middle - half:.2f}C{c:.1f} {middle - half:.2f} {c:.1f} {middle - right:.2f} "
        f"{end:.1f} {middle - right:.2f}"
    )
    lower = (
        f"L{end:.1f} {middle + right:.2f}C{c:.1f} {middle + right:.2f} {c:.1f} {middle + half:.2f} "
        f"{b:.1f} {middle + half:.2f}C{a:.1f} {middle + half:.2f} {a:.1f} {middle + left:.2f} "
        f"{begin:.1f} {middle + left:.2f}Z"
    )
    return upper + lower

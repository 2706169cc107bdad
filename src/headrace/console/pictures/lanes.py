"""The history of a topic from its oldest record to its newest, on two lanes: object store and disks."""

from __future__ import annotations

from typing import NamedTuple

LEAST = 1.5
"""Of what is there at all: it must be seen."""


class Span(NamedTuple):
    x: float
    width: float


class Lanes(NamedTuple):
    remote: Span
    """From the left: the store begins where the history does."""
    local: Span
    """What is on the disks and in the store as well."""
    waiting: Span
    """On its way: sealed, and not in the store yet."""
    written: Span
    """What is written into now."""


def lanes(only_remote: int, both: int, waiting: int, written: int, length: float) -> Lanes:
    """By numbers of records. What is small is drawn wider than it is, and the largest gives room for it."""
    values = (only_remote, both, waiting, written)
    whole = sum(values)
    if whole <= 0:
        return Lanes(*(Span(0.0, 0.0) for _ in values))
    widths = [max(LEAST, length * value / whole) if value > 0 else 0.0 for value in values]
    widest = widths.index(max(widths))
    widths[widest] -= sum(widths) - length
    first, second, third, last = widths
    return Lanes(
        Span(0.0, first + second),
        Span(first, second),
        Span(first + second, third),
        Span(first + second + third, last),
    )

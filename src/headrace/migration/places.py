"""Where a partition is compared: all of it, or its beginning, its end and places between that chance names.

Pure: the seed is given, and a report names it, so that the same places can be looked at again.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple


class Place(NamedTuple):
    start: int
    end: int
    at_most: int | None
    """Bytes after which there is enough; None for all up to the end."""

    def behind(self, offset: int) -> Place | None:
        """Without what lies before `offset`; None if nothing is left."""
        start = max(self.start, offset)
        return self._replace(start=start) if start < self.end else None


def common_range(source: tuple[int, int], target: tuple[int, int]) -> tuple[int, int]:
    """What both have, of (first offset, next offset) each; empty where they share nothing."""
    start = max(source[0], target[0])
    return start, max(start, min(source[1], target[1]))


def whole(start: int, end: int) -> list[Place]:
    return [Place(start, end, None)] if start < end else []


def samples(start: int, end: int, count: int, seed: str, at_most: int) -> list[Place]:
    """The first and the last record are always among them, with `count` between, one in each equal part."""
    if start >= end:
        return []
    dice = Random(seed)
    offsets = {start, end - 1}
    width = (end - start) / max(1, count)
    offsets.update(start + int(width * (index + dice.random())) for index in range(count))
    return [Place(offset, end, at_most) for offset in sorted(offsets) if offset < end]

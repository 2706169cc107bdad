"""Numbers of the last six hours, in buckets of two minutes: 720 bytes each, whatever the pace of looks.

The only part of what a poller keeps that changes. A reader in another thread gets a copy, which may have the
newest bucket or not.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

BUCKET_MS: Final = 120_000
BUCKETS: Final = 180
_UNKNOWN: Final = math.nan


class Track(StrEnum):
    """What is kept, each by a name."""

    #: Records a second that came into a topic; of the cluster by the name "".
    IN = "in"
    #: Records a second that groups committed in a topic; of the cluster by the name "".
    OUT = "out"
    #: Records that a group is behind.
    LAG = "lag"
    #: Milliseconds since the oldest record was written that a group has not read.
    LATE = "late"


_MEANS: Final = frozenset((Track.IN, Track.OUT))
"""A rate is the mean of its bucket. Of the others the worst counts: it must not be smoothed away."""


class Ring:
    __slots__ = ("_count", "_last", "_values")

    def __init__(self) -> None:
        self._values = array("f", [_UNKNOWN]) * BUCKETS
        self._last = -1
        """The number of the newest bucket, counted since 1970."""
        self._count = 0
        """Values in the newest bucket."""

    def add(self, at_ms: int, value: float, *, mean: bool) -> None:
        bucket = at_ms // BUCKET_MS
        if bucket < self._last:
            return  # the clock was set back: what is there stays
        if bucket > self._last:
            for skipped in range(max(self._last + 1, bucket - BUCKETS + 1), bucket):
                self._values[skipped % BUCKETS] = _UNKNOWN
            self._last, self._count = bucket, 0
        place = bucket % BUCKETS
        if not self._count:
            self._values[place] = value
        elif mean:
            self._values[place] += (value - self._values[place]) / (self._count + 1)
        else:
            self._values[place] = max(self._values[place], value)
        self._count += 1

    def until(self, at_ms: int) -> list[float | None]:
        """Oldest first, the bucket of that moment last; None where nothing was seen."""
        now = at_ms // BUCKET_MS
        if self._last < 0:
            return [None] * BUCKETS
        values = self._values[:]
        found: list[float | None] = []
        for bucket in range(now - BUCKETS + 1, now + 1):
            is_there = self._last - BUCKETS < bucket <= self._last
            value = values[bucket % BUCKETS] if is_there else _UNKNOWN
            found.append(None if math.isnan(value) else value)
        return found


class History:
    def __init__(self) -> None:
        self._rings: dict[Track, dict[str, Ring]] = {track: {} for track in Track}

    def add(self, track: Track, name: str, at_ms: int, value: float) -> None:
        ring = self._rings[track].get(name)
        if ring is None:
            ring = self._rings[track][name] = Ring()
        ring.add(at_ms, value, mean=track in _MEANS)

    def of(self, track: Track, name: str, at_ms: int) -> list[float | None]:
        """180 values of two minutes each, the last one of `at_ms`."""
        ring = self._rings[track].get(name)
        return [None] * BUCKETS if ring is None else ring.until(at_ms)

    def keep(self, track: Track, names: Iterable[str]) -> None:
        """Forget whatever else there was: it is gone from the cluster."""
        rings = self._rings[track]
        for gone in rings.keys() - set(names):
            del rings[gone]


def coarser(values: Sequence[float | None], points: int, *, mean: bool) -> list[float | None]:
    """For a small picture: so many points at most, each the mean or the worst of its part."""
    size = -(-len(values) // points)
    found: list[float | None] = []
    for at in range(0, len(values), size):
        known = [value for value in values[at : at + size] if value is not None]
        if not known:
            found.append(None)
        else:
            found.append(sum(known) / len(known) if mean else max(known))
    return found

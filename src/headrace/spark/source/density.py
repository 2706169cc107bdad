"""How many bytes the offsets of one partition have, as far as samples show it. Pure.

A fetch brings whole batches of a producer, so a sample can be of one record or of all, and what it says is
true of its middle. From one middle to the next, records are taken to grow or shrink evenly.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple


class Sample(NamedTuple):
    """Of the records from `begin` on, up to `end`."""

    begin: int
    end: int
    bytes: float

    @property
    def density(self) -> float:
        """Bytes for each offset. Compacted records and markers of transactions have an offset too."""
        return self.bytes / (self.end - self.begin)

    @property
    def middle(self) -> float:
        return (self.begin + self.end) / 2


class Density:
    """Invariant: the pieces lie one behind the other; there are gaps between them, and no overlaps."""

    def __init__(self, first: Sample) -> None:
        self._samples = {first.begin: first}
        self._pieces = [first]

    @property
    def end(self) -> int:
        """Of what was seen."""
        return self._pieces[-1].end

    def add(self, sample: Sample) -> None:
        self._samples[sample.begin] = sample
        self._pieces = []
        for each in sorted(self._samples.values(), reverse=True):
            self._pieces.insert(0, self._before_the_pieces(each))

    def _before_the_pieces(self, sample: Sample) -> Sample:
        """Fetches within one batch end together: what the longer one has more lies before the shorter."""
        begin = self._pieces[0].begin if self._pieces else sample.end
        if sample.end <= begin:
            return sample
        # Less than nothing where they do not end together, and records shrink: then it is as one offset.
        return Sample(sample.begin, begin, max(sample.density, sample.bytes - self.bytes(sample.end)))

    def bytes(self, end: int) -> float:
        """From the first sample on, up to `end`. Behind the last one all is as there."""
        last = self._pieces[-1]
        beyond = max(0, end - last.end) * last.density
        return beyond + sum(self._part(each, end) for each in self._all() if each.begin < end)

    def _all(self) -> Iterator[Sample]:
        """The pieces, and what is between them."""
        for piece, following in pairwise(self._pieces):
            yield piece
            if piece.end < following.begin:
                mean = (self._at(piece.end) + self._at(following.begin)) / 2
                yield Sample(piece.end, following.begin, mean * (following.begin - piece.end))
        yield self._pieces[-1]

    def _part(self, whole: Sample, end: int) -> float:
        if end >= whole.end:
            return whole.bytes
        # So that the whole is what it is, and no record in it has less than nothing.
        first = min(self._at(whole.begin), 2 * whole.density)
        growth = (whole.density - first) * (end - whole.begin) / (whole.end - whole.begin)
        return (first + growth) * (end - whole.begin)

    def _at(self, offset: int) -> float:
        """The density there, by the pieces whose middles are nearest on both sides."""
        if len(self._pieces) == 1:
            return self._pieces[0].density
        behind = bisect([each.middle for each in self._pieces], offset)
        after = min(max(behind, 1), len(self._pieces) - 1)
        left, right = self._pieces[after - 1], self._pieces[after]
        slope = (right.density - left.density) / (right.middle - left.middle)
        return max(0.0, left.density + slope * (offset - left.middle))

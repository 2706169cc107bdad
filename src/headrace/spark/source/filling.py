"""A batch of about so many bytes, by samples of the log. Pure: who takes the samples is given.

Brokers do not tell how many bytes lie between two offsets, and to read a batch twice costs twice. So records
are sampled where a batch begins and where it would end, and the end is moved until it fits. This is an
estimate: what lies between the samples is taken to be like them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.limits import Partition, within

#: Where records grow along the log, three leave a batch at two thirds of the limit.
_ROUNDS: Final = 4
#: A batch between these parts of the limit is good enough, and the middle is aimed at.
_ENOUGH: Final = 0.85
_AIM: Final = 0.95
#: Of a batch with more partitions, those with the largest backlogs are sampled, and the others like them.
_PARTITIONS: Final = 16
#: No guess goes further from the last one: it rests on what was seen before it.
_LEAP: Final = 4.0
#: So many offsets before its end a log is sampled last: some of them can be markers of transactions.
_TAIL: Final = 16
#: Of each partition, where nobody knows how large records are: few enough for any of them.
_BLIND: Final = 100


class Sample(NamedTuple):
    """Of the records from `begin` on, up to `end`."""

    begin: int
    end: int
    bytes: float

    @property
    def density(self) -> float:
        """Bytes for each offset. Compacted records and markers of transactions have an offset too."""
        return self.bytes / (self.end - self.begin)


TakeSample = Callable[[Partition, int], Sample | None]
"""None where nothing could be read."""


class Filled(NamedTuple):
    end: Offsets
    bytes: float
    """As estimated; 0 where nothing is known."""

    def density(self, begin: Offsets) -> float | None:
        """Bytes for each offset, if that is known."""
        taken = _many(begin, self.end)
        return self.bytes / taken if taken and self.bytes else None


def fill(
    begin: Offsets, end: Offsets, most_bytes: int, take: TakeSample, known: float | None = None
) -> Filled:
    """At least one record, and about `most_bytes`.

    Without any sample records are taken to be as the last ones, whose density is `known`. Never is everything
    read because brokers are slow: that is when a backlog is large.
    """
    backlog = {each: end[each] - begin[each] for each in end if end[each] > begin[each]}
    largest = sorted(backlog, key=lambda each: (-backlog[each], each))[:_PARTITIONS]
    first = {each: sample for each in largest if (sample := take(each, begin[each])) is not None}
    total = sum(backlog.values())
    if not first:
        return _unseen(begin, end, most_bytes, known)
    whole = _all(begin, end, {each: one.density for each, one in first.items()})
    # No more than there is: the next guess lies in proportion to this one.
    most = min(total, _most(total * most_bytes * _AIM / whole))
    below, above = (0, 0.0), (0, 0.0)
    found: Filled | None = None
    for _ in range(_ROUNDS):
        guess = within(begin, end, most)
        size = _size(begin, guess, first, take)
        if size <= most_bytes:
            found, below = Filled(guess, size), (most, size)
            if most == total or size >= most_bytes * _ENOUGH:
                return found
        else:
            above = (most, size)
        most = min(total, _next(below, above, most_bytes * _AIM))
    return found or Filled(within(begin, end, most), _AIM * most_bytes)


def _unseen(begin: Offsets, end: Offsets, most_bytes: int, known: float | None) -> Filled:
    if not known:
        return Filled({each: min(at, begin[each] + _BLIND) for each, at in end.items()}, 0.0)
    guess = within(begin, end, _most(most_bytes * _AIM / known))
    return Filled(guess, _many(begin, guess) * known)


def _many(begin: Offsets, end: Offsets) -> int:
    return sum(max(0, at - begin[each]) for each, at in end.items())


def _most(records: float) -> int:
    return max(1, int(records))


def _next(below: tuple[int, float], above: tuple[int, float], aim: float) -> int:
    """Between what was too small and what was too large, or further than the former."""
    if not above[0]:
        return _most(below[0] * (min(_LEAP, aim / below[1]) if below[1] else _LEAP))
    return _most(below[0] + (above[0] - below[0]) * (aim - below[1]) / (above[1] - below[1]))


def _size(begin: Offsets, guess: Offsets, first: dict[Partition, Sample], take: TakeSample) -> float:
    densities = {}
    for each, sample in first.items():
        if guess[each] > begin[each]:
            last = _last(each, guess[each], sample, take)
            densities[each] = _between(sample, guess[each], last) / (guess[each] - begin[each])
    return _all(begin, guess, densities or {each: sample.density for each, sample in first.items()})


def _last(partition: Partition, end: int, first: Sample, take: TakeSample) -> Sample | None:
    """From `end` on; where the log ends there, from a little before it, so that both ends are seen."""
    last = take(partition, end)
    if last is not None or end <= first.end:
        return last
    return take(partition, max(first.end, end - _TAIL))


def _between(first: Sample, end: int, last: Sample | None) -> float:
    """Bytes from where the first sample begins to `end`."""
    if last is None:
        return (end - first.begin) * first.density
    if end < first.end:
        # The first goes too far. What it has too much is seen by the last; all of it, if both end together.
        # That can be more than there was, where the last sees larger records: then it is as one offset.
        return max(first.density, first.bytes - (first.end - end) * last.density)
    unseen = (last.begin - first.end) * (first.density + last.density) / 2
    return first.bytes + unseen + (end - last.begin) * last.density


def _all(begin: Offsets, end: Offsets, densities: dict[Partition, float]) -> float:
    """Of all partitions; those that were not sampled are as the others on average."""
    average = sum(densities.values()) / len(densities)
    return sum(
        (end[each] - begin[each]) * densities.get(each, average) for each in end if end[each] > begin[each]
    )

"""A batch of about so many bytes, by samples of the log. Pure: who takes the samples is given.

Brokers do not tell how many bytes lie between two offsets, and to read a batch twice costs twice. So records
are sampled where a batch begins and where it would end, and the end is moved until it fits. This is an
estimate: what lies between two samples is taken to lie between what they say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final, NamedTuple

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.density import Density, Sample
from headrace.spark.source.limits import Partition, within

#: Two do where records grow or shrink along the log. Where they change at once, each halves the doubt.
_ROUNDS: Final = 4
#: A batch between these parts of the limit is good enough, and the middle is aimed at.
_ENOUGH: Final = 0.85
_AIM: Final = 0.95
#: Of a batch with more partitions, those with the largest backlogs are sampled, and the others like them.
_PARTITIONS: Final = 16
#: No guess goes further from the last one: it rests on what was seen before it.
_LEAP: Final = 4
#: So many offsets before its end a log is sampled last: some of them can be markers of transactions.
_TAIL: Final = 16
#: Of each partition, where nobody knows how large records are: few enough for any of them.
_BLIND: Final = 100


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
    if not first:
        return _unseen(begin, end, most_bytes, known)
    look = _Look(begin, end, take, {each: Density(sample) for each, sample in first.items()})
    total = sum(backlog.values())
    most, furthest = look.most_within(most_bytes * _AIM, total), 0
    found: Filled | None = None
    for _ in range(_ROUNDS):
        look.at_the_end_of(most)
        size = look.bytes(most)
        if size > most_bytes:
            furthest = total
        else:
            found = Filled(within(begin, end, most), size)
            if most == total or size >= most_bytes * _ENOUGH:
                break
        most = look.most_within(most_bytes * _AIM, furthest or min(total, most * _LEAP))
    # One that was looked at: between two looks all can be as the later one, and far too much.
    return found or Filled(within(begin, end, most), look.bytes(most))


class _Look:
    """At the partitions in `seen`; the others are as these on average."""

    def __init__(
        self, begin: Offsets, end: Offsets, take: TakeSample, seen: dict[Partition, Density]
    ) -> None:
        self._begin, self._end = begin, end
        self._take = take
        self._seen = seen
        self._average = sum(each.bytes(begin[name] + 1) for name, each in seen.items()) / len(seen)
        """Of a record, where none of the batch is in a partition that is looked at."""

    def at_the_end_of(self, most: int) -> None:
        """Take samples where a batch of so many records would end."""
        for each, at in within(self._begin, self._end, most).items():
            if each in self._seen and at > self._begin[each]:
                self._add(each, at)

    def _add(self, partition: Partition, at: int) -> None:
        sample = self._take(partition, at)
        if sample is None and at > self._seen[partition].end:
            # The log ends there. A little before it, so that both ends are seen.
            sample = self._take(partition, max(self._begin[partition], at - _TAIL))
        if sample is not None:
            self._seen[partition].add(sample)

    def bytes(self, most: int) -> float:
        """Of a batch of so many records."""
        batch = within(self._begin, self._end, most)
        taken = {each: at - self._begin[each] for each, at in batch.items() if at > self._begin[each]}
        known = {each: seen.bytes(batch[each]) for each, seen in self._seen.items() if each in taken}
        many = sum(taken[each] for each in known)
        average = sum(known.values()) / many if known else self._average
        return sum(known.get(each, average * taken[each]) for each in taken)

    def most_within(self, most_bytes: float, furthest: int) -> int:
        """So many records, and at least one."""
        return max(1, bisect_right(range(1, furthest + 1), most_bytes, key=self.bytes))


def _unseen(begin: Offsets, end: Offsets, most_bytes: int, known: float | None) -> Filled:
    if not known:
        return Filled({each: min(at, begin[each] + _BLIND) for each, at in end.items()}, 0.0)
    guess = within(begin, end, max(1, int(most_bytes * _AIM / known)))
    return Filled(guess, _many(begin, guess) * known)


def _many(begin: Offsets, end: Offsets) -> int:
    return sum(max(0, at - begin[each]) for each, at in end.items())

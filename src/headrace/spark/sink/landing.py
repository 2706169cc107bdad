"""Where rows have landed: which offset of the source has become which offset of the target.

A run is a stretch in which both count on by one. There is a new one wherever the source has a gap, such as a
marker, a record that compaction removed or one that was left out, and wherever the target has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord
from headrace.spark.sink.plan import Placed
from headrace.spark.sink.varints import Integers


class Runs(NamedTuple):
    """Of one partition of the target, in the order in which they were written. Three columns."""

    sources: Integers
    """The first source offset of each run."""
    targets: Integers
    counts: Integers

    @property
    def rows(self) -> int:
        return int(self.counts.sum())


Landed = Mapping[TopicPartition, Runs]
Aside = Callable[[Landed], Iterable[tuple[TopicPartition, NewRecord]]]
"""What a task writes beside its rows, in the same transaction, once it knows where they are. Pickled."""


def runs_of(source: Integers, base: int) -> Runs:
    """Of rows with these source offsets that lie one behind the other from `base` on."""
    starts = np.concatenate((np.zeros(1, np.int64), np.flatnonzero(np.diff(source) != 1) + 1))
    return Runs(source[starts], base + starts, np.diff(np.append(starts, len(source))))


def joined(parts: Iterable[Runs]) -> Runs:
    """One behind the other; where one goes on where the one before it ends, they are one."""
    sources, targets, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    goes_on = (sources[1:] == (sources + counts)[:-1]) & (targets[1:] == (targets + counts)[:-1])
    starts = np.concatenate((np.zeros(1, np.int64), np.flatnonzero(~goes_on) + 1))
    return Runs(sources[starts], targets[starts], np.add.reduceat(counts, starts))


class Landing:
    """Collects the runs of a task while its batches are answered."""

    def __init__(self) -> None:
        self._parts: dict[TopicPartition, list[Runs]] = {}

    def stored(self, target: TopicPartition, source: Integers, base: int) -> None:
        self._parts.setdefault(target, []).append(runs_of(source, base))

    def runs(self) -> dict[TopicPartition, Runs]:
        return {target: joined(parts) for target, parts in sorted(self._parts.items())}


def placed(landed: Landed) -> tuple[Placed, ...]:
    return tuple(
        Placed(
            target.topic,
            target.partition,
            runs.rows,
            int(runs.sources[0]),
            int(runs.sources[-1] + runs.counts[-1] - 1),
            int(runs.targets[0]),
            int(runs.targets[-1] + runs.counts[-1] - 1),
        )
        for target, runs in landed.items()
    )

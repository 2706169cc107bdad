"""What an audit knows at one moment: the tallies of each tier, and how far each can be taken for whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.audit.tally import NOTHING, Cell, Tally

Partition = tuple[str, int]
"""A topic and the number of a partition."""

Since = Mapping[str, int | None]
"""The topics that are audited, and the first window of each that is judged; None: whatever there is."""


def patience_ms(interval_ms: int, silent_after_ms: int) -> int:
    """How long a producer may not be heard before it is called silent: three of its intervals at least."""
    return max(3 * interval_ms, silent_after_ms)


class ProducerState(NamedTuple):
    """An incarnation that has not said that it is closed, or what came before a gap in its events."""

    producer: str
    incarnation: str
    server: str
    complete_until_ms: int
    heard_ms: int
    interval_ms: int
    #: When it was surely gone: its successor had started, or somebody said so. Of a gap, when that was over.
    ended_ms: int | None = None
    #: Why what it says cannot be taken whole, if so.
    fault: str | None = None
    #: Of all incarnations of its name. None: it has told of no topic yet, so it may mean any.
    topics: frozenset[str] | None = None

    @property
    def name(self) -> str:
        return f"{self.producer} on {self.server}"

    def writes_to(self, topic: str) -> bool:
        return self.topics is None or topic in self.topics


class Read(NamedTuple):
    """What was read of a cell of the log: up to which offset, and when the last of it was asked for."""

    tally: Tally = NOTHING
    last_offset: int = -1
    asked_ms: int = 0


@dataclass(frozen=True)
class LakeTier:
    """`cells` are counted up to where the log tier stands; `positions` say how far a partition is loaded."""

    cells: Mapping[Cell, Tally]
    positions: Mapping[Partition, int]


@dataclass(frozen=True)
class Picture:
    """Taken in this order: events, then the log, then the lakes. So each tier holds what the ones before it
    knew, unless something was lost."""

    now_ms: int
    #: When the events were asked for; what was told after that is not in it.
    events_ms: int
    window_length_ms: int
    #: How long after the end of a window its records may still be handed to a producer.
    lateness_ms: int
    #: Topics of which some producer has told, ever.
    told_topics: frozenset[str] = frozenset()
    producers: Sequence[ProducerState] = ()
    reported: Mapping[Cell, Tally] = field(default_factory=dict)
    uncertain: Mapping[Cell, int] = field(default_factory=dict)
    log: Mapping[Cell, Read] = field(default_factory=dict)
    #: Offsets that were in the log before it was read, and could not be: behind an open transaction, say, or
    #: not on every replica yet.
    unread: Mapping[Partition, int] = field(default_factory=dict)
    #: Of those partitions, the last moment as of which all has been read.
    heard: Mapping[Partition, int] = field(default_factory=dict)
    lakes: Mapping[str, LakeTier] = field(default_factory=dict)
    with_producers: bool = True
    #: By how much clocks of producers and of this audit may differ.
    clock_skew_ms: int = 1_000
    #: A producer that was not heard for so long, or for three of its intervals, is silent.
    silent_after_ms: int = 30_000

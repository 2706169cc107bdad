"""Who produces, and how far each can be believed: monitoring events, folded. Pure, and written down after
each pass."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final

from headrace.audit.event import Event
from headrace.audit.tally import NOTHING, Cell, Tally
from headrace.spark.audit.picture import ProducerState, patience_ms

#: A closed incarnation is remembered so long, in case an event of it is stored a second time.
_REMEMBER_MS: Final = 86_400_000


@dataclass
class Incarnation:
    producer: str
    server: str
    incarnation: str
    started_ms: int
    interval_ms: int
    window_length_ms: int
    #: How many events have come without a gap.
    heard: int = 0
    #: As of the last of those; before the first, nothing is complete.
    complete_until_ms: int = 0
    closed: bool = False
    heard_ms: int = 0
    #: By its own clock, when it told last.
    told_ms: int = 0
    retired_ms: int | None = None
    #: Events behind a gap: (complete until, closing), by sequence.
    ahead: dict[int, tuple[int, bool]] = field(default_factory=dict)

    def hear(self, event: Event, heard_ms: int) -> bool:
        """False if it was heard before: a producer sends again what it does not know to be stored."""
        if event.sequence < self.heard or event.sequence in self.ahead:
            return False
        self.heard_ms = max(self.heard_ms, heard_ms)
        self.told_ms = max(self.told_ms, event.time_ms)
        self.ahead[event.sequence] = (event.complete_until_ms, event.closing)
        while self.heard in self.ahead:
            complete_until_ms, closing = self.ahead.pop(self.heard)
            self.complete_until_ms = max(self.complete_until_ms, complete_until_ms)
            self.closed = self.closed or closing
            self.heard += 1
        return True


@dataclass
class Told:
    """What new events say, by cell."""

    tallies: dict[Cell, Tally] = field(default_factory=dict)
    uncertain: dict[Cell, int] = field(default_factory=dict)


class Roster:
    def __init__(self) -> None:
        self._known: dict[str, Incarnation] = {}
        #: By the producer's name, of all its incarnations.
        self._topics: dict[str, set[str]] = {}

    def hear(self, events: Iterable[tuple[Event, int]], window_ms: int) -> Told:
        """Take in events with the time at which each was stored; what they add to the tallies."""
        told = Told()
        for event, heard_ms in events:
            known = self._known.get(event.incarnation)
            if known is None:
                known = self._known[event.incarnation] = Incarnation(
                    event.producer,
                    event.server,
                    event.incarnation,
                    event.started_ms,
                    event.interval_ms,
                    event.window_length_ms,
                    complete_until_ms=event.started_ms,
                )
            if not known.hear(event, heard_ms):
                continue
            topics = self._topics.setdefault(event.producer, set())
            for cell, tally, uncertain in event.counts:
                topics.add(cell.topic)
                if event.window_length_ms != window_ms:
                    continue
                told.tallies[cell] = told.tallies.get(cell, NOTHING).plus(tally)
                if uncertain:
                    told.uncertain[cell] = told.uncertain.get(cell, 0) + uncertain
        self._forget()
        return told

    def retire(self, incarnation: str, moment_ms: int) -> None:
        known = self._known.get(incarnation)
        if known is not None:
            known.retired_ms = moment_ms

    def _forget(self) -> None:
        newest = max((known.heard_ms for known in self._known.values()), default=0)
        self._known = {
            name: known
            for name, known in self._known.items()
            if not known.closed or known.heard_ms > newest - _REMEMBER_MS
        }

    @property
    def told_topics(self) -> frozenset[str]:
        return frozenset().union(*self._topics.values())

    def states(self, window_ms: int, now_ms: int, silent_after_ms: int) -> list[ProducerState]:
        """Every incarnation that has not closed, or that cannot be compared."""
        found = []
        for known in self._known.values():
            fault = _fault(known, window_ms)
            if known.closed and fault is None:
                continue
            found.append(
                ProducerState(
                    known.producer,
                    known.incarnation,
                    known.server,
                    # What is told of other windows is told of none of these.
                    known.started_ms if known.window_length_ms != window_ms else known.complete_until_ms,
                    known.heard_ms,
                    known.interval_ms,
                    self._ended_ms(known, now_ms, silent_after_ms),
                    fault,
                    frozenset(self._topics.get(known.producer, ())) or None,
                )
            )
        return found

    def _ended_ms(self, known: Incarnation, now_ms: int, silent_after_ms: int) -> int | None:
        """When it was surely gone: somebody said so, or another of its name and server started after its last
        word.

        Processes of one name may also run beside each other. So only one that is silent can have been
        followed, and it may have lived on until its next report was due.
        """
        if known.retired_ms is not None:
            return known.retired_ms
        if now_ms - known.heard_ms <= patience_ms(known.interval_ms, silent_after_ms):
            return None
        started = [
            other.started_ms
            for other in self._known.values()
            if (other.producer, other.server) == (known.producer, known.server)
            and other.incarnation != known.incarnation
            and other.started_ms > known.told_ms
        ]
        return max(min(started), known.told_ms + 2 * known.interval_ms) if started else None

    def encode(self) -> str:
        return json.dumps(
            {
                "known": [asdict(known) for known in self._known.values()],
                "topics": {name: sorted(topics) for name, topics in self._topics.items()},
            },
            separators=(",", ":"),
        )


def decode(text: str | None) -> Roster:
    roster = Roster()
    if text is None:
        return roster
    document = json.loads(text)
    for entry in document["known"]:
        ahead = {int(sequence): (until, closing) for sequence, (until, closing) in entry.pop("ahead").items()}
        known = Incarnation(**entry, ahead=ahead)
        roster._known[known.incarnation] = known
    roster._topics = {name: set(topics) for name, topics in document["topics"].items()}
    return roster


def _fault(known: Incarnation, window_ms: int) -> str | None:
    if known.window_length_ms != window_ms:
        return (
            f"tells of windows of {known.window_length_ms} ms, and this audit has windows of {window_ms} ms"
        )
    return f"sent an event {known.heard} that was lost" if known.ahead else None

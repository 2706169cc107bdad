"""Who produces, and how far each can be believed: monitoring events, folded. Pure, and written down after
each pass."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Final

from headrace.audit.event import Event
from headrace.audit.tally import NOTHING, Cell, Tally
from headrace.spark.audit.picture import ProducerState, patience_ms

#: A closed incarnation is remembered so long, in case an event of it is stored a second time.
_REMEMBER_MS: Final = 86_400_000


@dataclass
class Run:
    """Events that came one after the other, without a gap."""

    first: int
    #: The number of the one that would come next.
    following: int
    #: By its own clock, when the first of them was made.
    began_ms: int
    complete_until_ms: int
    closing: bool = False

    def joined(self, later: Run) -> Run:
        complete_until_ms = max(self.complete_until_ms, later.complete_until_ms)
        return Run(self.first, later.following, self.began_ms, complete_until_ms, later.closing)


@dataclass
class Incarnation:
    producer: str
    server: str
    incarnation: str
    started_ms: int
    interval_ms: int
    window_length_ms: int
    #: In their order. The first begins with event 0, and is empty until that has come.
    runs: list[Run]
    heard_ms: int = 0
    #: By its own clock, when it told last.
    told_ms: int = 0
    retired_ms: int | None = None
    #: When another of its name and server started first that is forgotten now.
    follower_ms: int | None = None

    @property
    def closing(self) -> bool:
        """No more will come, except what was sent before and is late."""
        return self.runs[-1].closing

    @property
    def closed(self) -> bool:
        """And all has come."""
        return self.closing and len(self.runs) == 1

    def hear(self, event: Event, heard_ms: int) -> bool:
        """False if it was heard before: a producer sends again what it does not know to be stored."""
        number = event.sequence
        if any(run.first <= number < run.following for run in self.runs):
            return False
        self.heard_ms = max(self.heard_ms, heard_ms)
        self.told_ms = max(self.told_ms, event.time_ms)
        alone = Run(number, number + 1, event.time_ms, event.complete_until_ms, event.closing)
        runs: list[Run] = []
        for run in sorted([*self.runs, alone], key=lambda run: (run.first, run.following)):
            if runs and runs[-1].following == run.first:
                runs[-1] = runs[-1].joined(run)
            else:
                runs.append(run)
        self.runs = runs
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
                    [Run(0, 0, event.started_ms, event.started_ms)],
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
        if known is None:
            return
        # Who has told since it was first retired was not gone then.
        before = known.retired_ms
        known.retired_ms = moment_ms if before is None or before < known.told_ms else min(before, moment_ms)

    def _forget(self) -> None:
        newest = max((known.heard_ms for known in self._known.values()), default=0)
        kept = {
            name: known
            for name, known in self._known.items()
            if not known.closed or known.heard_ms > newest - _REMEMBER_MS
        }
        if len(kept) == len(self._known):
            return
        for known in kept.values():
            known.follower_ms = self._follower_ms(known)
        self._known = kept

    @property
    def told_topics(self) -> frozenset[str]:
        return frozenset().union(*self._topics.values())

    def states(self, window_ms: int, now_ms: int, silent_after_ms: int) -> list[ProducerState]:
        """Every incarnation that has not closed, or that cannot be compared; and every gap in what one told.

        What a lost event told of was handed over before the next event was made. So a gap is an end of which
        nothing is known, like that of a producer that died, and the next event is a new beginning.
        """
        found = []
        for known in self._known.values():
            ended_ms = self._ended_ms(known, now_ms, silent_after_ms)
            if known.window_length_ms != window_ms:
                length_ms = known.window_length_ms
                fault = f"tells of windows of {length_ms} ms, and this audit has windows of {window_ms} ms"
                # What is told of other windows is told of none of these.
                found.append(self._state(known, known.started_ms, ended_ms, fault))
                continue
            for before, after in pairwise(known.runs):
                lost = f"sent an event {before.following} that was lost"
                found.append(self._state(known, before.complete_until_ms, after.began_ms, lost))
            if not known.closing:
                found.append(self._state(known, known.runs[-1].complete_until_ms, ended_ms))
        return found

    def _state(
        self, known: Incarnation, complete_until_ms: int, ended_ms: int | None, fault: str | None = None
    ) -> ProducerState:
        return ProducerState(
            known.producer,
            known.incarnation,
            known.server,
            complete_until_ms,
            known.heard_ms,
            known.interval_ms,
            ended_ms,
            fault,
            frozenset(self._topics.get(known.producer, ())) or None,
        )

    def _ended_ms(self, known: Incarnation, now_ms: int, silent_after_ms: int) -> int | None:
        """When it was surely gone: it or somebody else said so, or another of its name and server started
        after its last word.

        Processes of one name may also run beside each other. So only one that is silent can have been
        followed, and it may have lived on until its next report was due.
        """
        if known.closing:
            return known.told_ms
        found = []
        if known.retired_ms is not None and known.retired_ms >= known.told_ms:
            found.append(known.retired_ms)
        silent = now_ms - known.heard_ms > patience_ms(known.interval_ms, silent_after_ms)
        if silent and (follower_ms := self._follower_ms(known)) is not None:
            found.append(max(follower_ms, known.told_ms + 2 * known.interval_ms))
        return min(found, default=None)

    def _follower_ms(self, known: Incarnation) -> int | None:
        """When the first started of those that began after its last word."""
        started = [
            other.started_ms
            for other in self._known.values()
            if (other.producer, other.server) == (known.producer, known.server)
            and other.incarnation != known.incarnation
        ]
        if known.follower_ms is not None:
            started.append(known.follower_ms)
        return min((moment for moment in started if moment > known.told_ms), default=None)

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
        known = Incarnation(**{**entry, "runs": [Run(**run) for run in entry["runs"]]})
        roster._known[known.incarnation] = known
    roster._topics = {name: set(topics) for name, topics in document["topics"].items()}
    return roster

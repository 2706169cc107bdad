"""The race of conditional writes: what tiered storage rests on, put to the test in the user's own bucket.

Many writers write one object at once, all under the same condition. A store that keeps the condition lets one
of them through. A store that ignores it, or compares and writes in two steps, lets several through, and then
two brokers could both believe that the manifest is theirs.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Final

from headrace.core.ports_objects import (
    ABSENT,
    Absent,
    ConditionalOutcome,
    Done,
    Found,
    ObjectStore,
    OutcomeUnknown,
    Refused,
    Tag,
)

IF_NONE_MATCH: Final = "If-None-Match"
IF_MATCH: Final = "If-Match"


@dataclass(frozen=True, slots=True)
class RaceRound:
    """What became of one race."""

    condition: str
    winners: int
    """Writers that were told that they had written."""
    unknown: int
    """Writers that got no answer: they have written or not."""
    stored: bool
    """Whether the object is what one of those wrote."""
    refusal: str = ""
    """The first reason why the store would not answer at all."""

    @property
    def is_won_by_one(self) -> bool:
        return self.stored and (self.winners == 1 or (self.winners == 0 and self.unknown > 0))


def run_races(
    store: ObjectStore, prefix: str, *, deadline_seconds: float, writers: int, rounds: int
) -> list[RaceRound]:
    """For each round an object that nobody has, written by many who want to be the first, and then by many
    who want to be the next. It ends at the first refusal. Whoever calls deletes what is below `prefix`."""
    found: list[RaceRound] = []
    with ThreadPoolExecutor(writers, "race") as threads:
        for number in range(rounds):
            key = f"{prefix}race-{number}"
            expected: Tag | Absent = ABSENT
            for condition in (IF_NONE_MATCH, IF_MATCH):
                race = _Race(store, key, condition, expected, writers, deadline_seconds)
                found.append(race.run(threads))
                if race.tag is None or found[-1].refusal:
                    return found
                expected = race.tag
    return found


class _Race:
    def __init__(
        self,
        store: ObjectStore,
        key: str,
        condition: str,
        expected: Tag | Absent,
        writers: int,
        deadline_seconds: float,
    ) -> None:
        self._store = store
        self._key = key
        self._condition = condition
        self._expected = expected
        self._writers = writers
        self._deadline = deadline_seconds
        self._together = Barrier(writers)
        self.tag: Tag | None = None
        """Of what is there after it."""

    def run(self, threads: ThreadPoolExecutor) -> RaceRound:
        contents = [f"{self._condition} {number}".encode() for number in range(self._writers)]
        outcomes = list(threads.map(self._write, contents))
        after = self._store.get(self._key, deadline_seconds=self._deadline)
        self.tag = after.tag if isinstance(after, Found) else None

        def those(kind: type[Done | OutcomeUnknown]) -> list[bytes]:
            return [
                content
                for content, outcome in zip(contents, outcomes, strict=True)
                if isinstance(outcome, kind)
            ]

        winners, unknown = those(Done), those(OutcomeUnknown)
        reasons = [each.reason for each in (*outcomes, after) if isinstance(each, Refused)]
        if (not winners and len(unknown) == self._writers) or isinstance(after, OutcomeUnknown):
            reasons += [each.reason for each in (*outcomes, after) if isinstance(each, OutcomeUnknown)]
        return RaceRound(
            self._condition,
            len(winners),
            len(unknown),
            stored=isinstance(after, Found) and after.data in (winners or unknown),
            refusal=reasons[0] if reasons else "",
        )

    def _write(self, content: bytes) -> ConditionalOutcome:
        self._together.wait()
        return self._store.put_if(self._key, content, self._expected, deadline_seconds=self._deadline)

"""An object store that is slow, loses requests and answers, and lists what was: all of it from a seed.

A call has two moments: when it reaches the store and takes effect, and when its answer is back. Either may
never come, and the first may come after the deadline of the caller, who has long read something else by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

from headrace.core.ports import Buffer
from headrace.core.ports_objects import (
    Absent,
    ConditionalOutcome,
    DeleteOutcome,
    GetOutcome,
    Listing,
    ListOutcome,
    ObjectEntry,
    ObjectStore,
    OutcomeUnknown,
    PutOutcome,
    RangeOutcome,
    Tag,
)
from headrace.testing.simulation.event_queue import EventQueue
from headrace.testing.simulation.memory_objects import MemoryObjects

_Outcome = TypeVar("_Outcome")
_FIRST_MS: Final = 1


@dataclass(slots=True)
class StoreFaults:
    """Shares of all calls. None of them by default: then a call only takes its time."""

    lost: float = 0.0
    """Never reaches the store."""
    unanswered: float = 0.0
    """Takes effect, and its answer never comes."""
    late: float = 0.0
    """Takes effect after the caller has given up."""
    stale_listings: float = 0.0
    """Shows what was, `stale_ms` ago at most."""
    slowest_ms: int = 50
    latest_ms: int = 20_000
    """How long after its deadline a late call may still take effect."""
    stale_ms: int = 60_000
    is_down: bool = False
    """Nothing reaches it, nobody is answered."""


class FaultyObjects:
    """Asked by `submit` it answers later, as virtual time goes on. As an object store of the port it lets
    time go on until there is an answer, so that it passes the suite of the others."""

    def __init__(self, events: EventQueue, random: Random, faults: StoreFaults | None = None) -> None:
        self.events = events
        self.faults = StoreFaults() if faults is None else faults
        self.inside = MemoryObjects(events.wall_ms)
        """What the store holds, for checks: without faults, without time."""
        self._random = random
        self._view = _ListedAsItWas(self)
        self._former: list[tuple[int, tuple[ObjectEntry, ...]]] = []
        self._remembered = -1

    def submit(
        self,
        call: Callable[[ObjectStore], _Outcome],
        answered: Callable[[_Outcome | OutcomeUnknown], None],
        *,
        deadline_seconds: float,
    ) -> None:
        """`answered` is called once: with what the store said, or at the deadline."""
        deadline_ms = int(deadline_seconds * 1000)
        arrives_ms, answers_ms = self._fate(deadline_ms)
        waits = True

        def answer(outcome: _Outcome | OutcomeUnknown) -> None:
            nonlocal waits
            if waits:
                waits = False
                answered(outcome)

        def arrive() -> None:
            if self.faults.is_down:
                return
            self._remember()
            outcome = call(self._view)
            if answers_ms is not None:
                self.events.after(answers_ms, lambda: answer(outcome))

        if arrives_ms is not None:
            self.events.after(arrives_ms, arrive)
        unknown = OutcomeUnknown(f"no answer within {deadline_seconds:g} s")
        self.events.after(deadline_ms, lambda: answer(unknown))

    def _fate(self, deadline_ms: int) -> tuple[int | None, int | None]:
        """When it arrives, and how long after that it is answered; None is never."""
        faults, random = self.faults, self._random
        drawn = random.random()
        slow = (random.randint(_FIRST_MS, faults.slowest_ms), random.randint(_FIRST_MS, faults.slowest_ms))
        if drawn < faults.lost:
            return None, None
        if drawn < faults.lost + faults.unanswered:
            return slow[0], None
        if drawn < faults.lost + faults.unanswered + faults.late:
            return deadline_ms + random.randint(_FIRST_MS, faults.latest_ms), None
        return slow

    def _remember(self) -> None:
        """What a stale listing may show. A store without them need not remember."""
        if self.faults.stale_listings and self._remembered != self.inside.changes:
            self._remembered = self.inside.changes
            listed = self.inside.list("", deadline_seconds=0)
            assert isinstance(listed, Listing)
            self._former.append((self.events.now_ms, tuple(listed.objects)))
            oldest_ms = self.events.now_ms - self.faults.stale_ms
            while self._former[0][0] < oldest_ms:
                self._former.pop(0)

    def listed(self, prefix: str) -> ListOutcome:
        if not self._former or self._random.random() >= self.faults.stale_listings:
            return self.inside.list(prefix, deadline_seconds=0)
        _, objects = self._random.choice(self._former)
        return Listing([each for each in objects if each.key.startswith(prefix)])

    def _wait(
        self, call: Callable[[ObjectStore], _Outcome], deadline_seconds: float
    ) -> _Outcome | OutcomeUnknown:
        answers: list[_Outcome | OutcomeUnknown] = []
        self.submit(call, answers.append, deadline_seconds=deadline_seconds)
        while not answers:
            self.events.run_next()
        return answers[0]

    def get(self, key: str, *, deadline_seconds: float) -> GetOutcome:
        return self._wait(lambda store: store.get(key, deadline_seconds=0), deadline_seconds)

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        return self._wait(
            lambda store: store.get_range(key, start, length, deadline_seconds=0), deadline_seconds
        )

    def put(self, key: str, data: Buffer | Iterable[Buffer], *, deadline_seconds: float) -> PutOutcome:
        return self._wait(lambda store: store.put(key, data, deadline_seconds=0), deadline_seconds)

    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        return self._wait(
            lambda store: store.put_if(key, data, expected, deadline_seconds=0), deadline_seconds
        )

    def delete(self, key: str, *, deadline_seconds: float) -> DeleteOutcome:
        return self._wait(lambda store: store.delete(key, deadline_seconds=0), deadline_seconds)

    def list(self, prefix: str, *, deadline_seconds: float) -> ListOutcome:
        return self._wait(lambda store: store.list(prefix, deadline_seconds=0), deadline_seconds)


class _ListedAsItWas:
    """The store inside, but for its listings."""

    def __init__(self, store: FaultyObjects) -> None:
        self._store = store
        inside = store.inside
        self.get, self.get_range, self.put = inside.get, inside.get_range, inside.put
        self.put_if, self.delete = inside.put_if, inside.delete

    def list(self, prefix: str, *, deadline_seconds: float) -> ListOutcome:
        return self._store.listed(prefix)

"""Object stores that must not hold history, each for its own reason."""

from __future__ import annotations

from headrace.core.ports import Buffer
from headrace.core.ports_objects import (
    ABSENT,
    Absent,
    ConditionalOutcome,
    DeleteOutcome,
    Done,
    Found,
    GetOutcome,
    ListOutcome,
    LostRace,
    OutcomeUnknown,
    Refused,
    Tag,
)
from headrace.testing.simulation.memory_objects import MemoryObjects


class Fit(MemoryObjects):
    def __init__(self) -> None:
        super().__init__(lambda: 1_700_000_000_000)


class IgnoresConditions(Fit):
    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        return Done(self.put(key, data, deadline_seconds=deadline_seconds).tag)  # type: ignore[union-attr]  # it is


class ComparesAndWritesInTwoSteps(Fit):
    """Keeps a condition as long as one asks at a time: every race has two winners."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, Tag | Absent], int] = {}

    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        if "/race-" not in key:
            return super().put_if(key, data, expected, deadline_seconds=deadline_seconds)
        count = self._seen[key, expected] = self._seen.get((key, expected), 0) + 1
        if count > 2:
            return LostRace()
        return Done(self.put(key, data, deadline_seconds=deadline_seconds).tag)  # type: ignore[union-attr]  # it is


class LetsNobodyWin(Fit):
    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        return LostRace()


class TellsTheWrongWinner(Fit):
    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        outcome = super().put_if(key, data, expected, deadline_seconds=deadline_seconds)
        if isinstance(outcome, Done) and "/race-" in key:
            self.put(key, b"somebody else's", deadline_seconds=deadline_seconds)
        return outcome


class KnowsNoConditions(Fit):
    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        return Refused("not implemented")


class HasNoTags(Fit):
    def get(self, key: str, *, deadline_seconds: float) -> GetOutcome:
        found = super().get(key, deadline_seconds=deadline_seconds)
        return Found(found.data, Tag("")) if isinstance(found, Found) else ABSENT


class Forgets(Fit):
    def get(self, key: str, *, deadline_seconds: float) -> GetOutcome:
        return ABSENT


class MayNotDelete(Fit):
    def delete(self, key: str, *, deadline_seconds: float) -> DeleteOutcome:
        return Refused("403 Forbidden: AccessDenied")


class MayNotList(Fit):
    def list(self, prefix: str, *, deadline_seconds: float) -> ListOutcome:
        return Refused("403 Forbidden: AccessDenied")


class NeverAnswersRaces(Fit):
    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        if "/race-" in key:
            return OutcomeUnknown("no answer within 10 s")
        return super().put_if(key, data, expected, deadline_seconds=deadline_seconds)


class LosesHalfOfTheAnswers(Fit):
    """As a network does. It is fit: who asks for the outcome by reading finds it."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        outcome = super().put_if(key, data, expected, deadline_seconds=deadline_seconds)
        self._count += 1
        return OutcomeUnknown("reset") if "/race-" in key and self._count % 2 else outcome

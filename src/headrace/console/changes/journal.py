"""What this console was told to change, by whom, and what came of it. Also in its log, which stays."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from headrace.console.changes.planned import Planned, Subject

log = logging.getLogger("headrace.console")

MOST_KEPT: Final = 500


class Outcome(StrEnum):
    BEGUN = "under way"
    DONE = "done"
    FAILED = "failed"
    #: No answer came: it may have been done.
    UNKNOWN = "not known"


@dataclass(slots=True)
class Entry:
    number: int
    at_ms: int
    principal: str
    host: str
    subject: Subject
    title: str
    told: Sequence[str]
    commands: Sequence[str]
    beside: Sequence[Subject] = ()
    adds: bool = False
    outcome: Outcome = Outcome.BEGUN
    steps: list[str] = field(default_factory=list)
    """Those that were begun. All but the last one were done, and that too if the outcome is."""
    said: str = ""
    """By the brokers, where they have not done it."""
    left: list[str] | None = None
    """What a look afterwards still finds to do; None where nobody could look."""
    ended_ms: int | None = None


class Journal:
    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=MOST_KEPT)
        self._last = 0

    @property
    def newest_first(self) -> list[Entry]:
        return list(reversed(self._entries))

    def entry(self, number: int) -> Entry | None:
        return next((each for each in self._entries if each.number == number), None)

    def begin(self, at_ms: int, principal: str, host: str, planned: Planned) -> Entry:
        """Written before anything is done."""
        self._last += 1
        found = Entry(
            self._last,
            at_ms,
            principal,
            host,
            planned.subject,
            planned.title,
            planned.told,
            planned.commands,
            planned.beside,
            planned.adds,
        )
        self._entries.append(found)
        log.warning("a change begins", extra={**_who(found), "change": found.told})
        return found

    def end(self, entry: Entry, at_ms: int, outcome: Outcome, said: str = "") -> None:
        entry.outcome, entry.said, entry.ended_ms = outcome, said, at_ms
        log.warning("a change has ended", extra={**_who(entry), "outcome": outcome.value, "said": said})


def _who(entry: Entry) -> dict[str, object]:
    return {
        "number": entry.number,
        "principal": entry.principal,
        "host": entry.host,
        "subject": entry.subject.words,
        "title": entry.title,
    }

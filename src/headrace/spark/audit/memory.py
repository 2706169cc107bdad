"""What an audit knows from pass to pass beside its tallies: who produces, on which terms it began, and how
far a log is known that always has something open.

It is written down with every pass. So neither a restart nor another option changes what windows mean that are
not settled yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.spark.audit import roster as rosters
from headrace.spark.audit.config import AuditConfig, AuditRefused
from headrace.spark.audit.offsets import Ends
from headrace.spark.audit.picture import Partition
from headrace.spark.audit.roster import Roster


class Mark(NamedTuple):
    """Where a log ended when it was asked. When it is read to there, it is known as it was at that time."""

    asked_ms: int
    end: int
    #: The same of the last mark that was reached.
    heard_ms: int | None = None


@dataclass
class Memory:
    roster: Roster = field(default_factory=Roster)
    window_ms: int | None = None
    #: The first window of each topic that is judged. None: whatever the topic holds.
    since: dict[str, int | None] = field(default_factory=dict)
    #: Of partitions with something that cannot be read yet.
    marks: dict[Partition, Mark] = field(default_factory=dict)

    def agree(self, config: AuditConfig) -> None:
        """The first word stands. The log was read from there, and counted in those windows."""
        if self.window_ms is None:
            self.window_ms = config.window_ms
        if self.window_ms != config.window_ms:
            raise AuditRefused(
                f"{config.state} has windows of {self.window_ms} ms, not of {config.window_ms} ms: "
                "leave them as they are, or give the audit a new --state"
            )
        for topic in config.topics:
            self.since.setdefault(topic, config.since_ms)

    def listen(
        self, ends: Mapping[Partition, Ends], positions: Mapping[Partition, int], asked_ms: int
    ) -> None:
        """One mark at a time will do: when it is reached, the next is set where the log ends then."""
        marks = {}
        for place, end in ends.items():
            if positions[place] >= end.log_end:
                continue
            mark = self.marks.get(place)
            if mark is None:
                marks[place] = Mark(asked_ms, end.log_end)
            elif positions[place] >= mark.end:
                marks[place] = Mark(asked_ms, end.log_end, mark.asked_ms)
            else:
                marks[place] = mark
        self.marks = marks

    @property
    def heard(self) -> dict[Partition, int]:
        return {place: mark.heard_ms for place, mark in self.marks.items() if mark.heard_ms is not None}

    def encode(self) -> str:
        document = {
            "window_ms": self.window_ms,
            "since": self.since,
            "marks": [[*place, *mark] for place, mark in sorted(self.marks.items())],
            "roster": self.roster.encode(),
        }
        return json.dumps(document, separators=(",", ":"))


def decode(text: str | None) -> Memory:
    if text is None:
        return Memory()
    document = json.loads(text)
    try:
        marks = {(topic, partition): Mark(*mark) for topic, partition, *mark in document["marks"]}
        return Memory(rosters.decode(document["roster"]), document["window_ms"], document["since"], marks)
    except (KeyError, TypeError) as error:
        raise AuditRefused(
            "another version of the audit has written these books: give this one a new --state"
        ) from error

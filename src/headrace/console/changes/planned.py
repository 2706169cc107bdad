"""A change before it is made: what a person is shown, and what is compared when they say yes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headrace.client.cluster import Cluster
from headrace.client.offset_resets import PlannedReset
from headrace.core.ids import TopicPartition
from headrace.desired.changes import Difference
from headrace.security.acl import ResourceType

Tell = Callable[[str], None]
"""Gets the words of a step before it begins."""
Run = Callable[[Cluster, Tell], Awaitable[None]]
"""Returns when it is so. Raises ClientFailure at the first that is refused; what was done before stays."""


class Subject(NamedTuple):
    """What is changed."""

    type: ResourceType
    name: str

    @property
    def words(self) -> str:
        return f"{self.type.name.lower()} {self.name}"


class Line(NamedTuple):
    sign: str
    """+, ~ or -."""
    what: str
    differences: Sequence[Difference] = ()


class Shift(NamedTuple):
    """Where a group goes on in a partition."""

    partition: TopicPartition
    before: int | None
    after: int
    first: int
    end: int
    again: int
    """Records that are read once more."""
    skipped: int
    """Records that are not read."""
    lag: int
    """Afterwards."""

    @classmethod
    def of(cls, entry: PlannedReset) -> Shift:
        """Where nothing was committed, nothing is read again; what lies before is passed over."""
        before = entry.first if entry.before is None else min(max(entry.before, entry.first), entry.end)
        again = 0 if entry.before is None else max(0, before - entry.after)
        skipped = max(0, entry.after - before)
        return cls(
            entry.partition, entry.before, entry.after, entry.first, entry.end, again, skipped, entry.lag
        )


@dataclass(frozen=True, slots=True)
class Planned:
    subject: Subject
    title: str
    lines: tuple[Line, ...]
    commands: tuple[str, ...]
    """What does the same on a command line."""
    run: Run
    shifts: tuple[Shift, ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Why it cannot be done, in sentences."""
    fields: tuple[tuple[str, str], ...] = ()
    """What says the same change once more, whatever happens meanwhile."""
    typed: str = ""
    """What has to be typed; empty where a button is enough."""
    identity: str = ""
    """Of what is changed: another topic with the same name is another one, and one that is empty and read by
    nobody is not the same as one that is used."""

    shown: tuple[tuple[str, str], ...] = ()
    """To whoever asks, and to nobody else: what is in records. The journal has none of it."""
    beside: tuple[Subject, ...] = ()
    """What it tells of besides: whoever may not see it is not told of the change."""
    adds: bool = False
    """Whatever there is, it would be added once more: a look afterwards tells nothing."""

    @property
    def changes_nothing(self) -> bool:
        return not self.lines and not self.shifts

    @property
    def fingerprint(self) -> str:
        """The same as long as the same would be done to the same. Where a log ends moves always, and how many
        records there are: neither is part of it."""
        moved = [(each.partition, each.before, each.after) for each in self.shifts]
        return json.dumps([self.subject, self.identity, self.lines, moved])

    @property
    def told(self) -> list[str]:
        """In lines of text, for whoever reads it later."""
        said = []
        for line in self.lines:
            said.append(f"{line.sign} {line.what}")
            said += [f"{each.what}: {value(each.old)} -> {value(each.new)}" for each in line.differences]
        return said + [
            f"{each.partition}: {'nothing' if each.before is None else each.before} -> {each.after}"
            for each in self.shifts
        ]


def value(text: str | None) -> str:
    return "(default)" if text is None else text or '""'


class Plan(Protocol):
    """Plans one kind of change from the fields of a form. Changes nothing. Raises ClientFailure."""

    async def __call__(self, cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned: ...

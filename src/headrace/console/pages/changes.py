"""Changes: what this console has made, and what looks at the cluster have found different."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from headrace.console.changes.journal import Entry, Journal, Outcome
from headrace.console.pages.page import NotThere, Page
from headrace.observe.metadata_changes import MetadataChange
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType

MOST: Final = 200


MayDescribe = Callable[[Operation, ResourceType, str], bool]


class MadeRow(NamedTuple):
    number: int
    at_ms: int
    principal: str
    title: str
    outcome: str


class ChangesView(NamedTuple):
    made: Sequence[MadeRow]
    makes: bool
    """Whether this console may change anything."""
    seen: Sequence[MetadataChange]
    """The newest first."""
    more: int
    sees_cluster: bool


class ChangeView(NamedTuple):
    number: int
    at_ms: int
    ended_ms: int | None
    principal: str
    host: str
    kind: str
    name: str
    title: str
    told: Sequence[str]
    commands: Sequence[str]
    outcome: str
    steps: Sequence[str]
    said: str
    left: Sequence[str] | None
    is_there: bool
    """What was changed can be looked at."""


class Viewer(NamedTuple):
    principal: str
    """Whoever asked for a change sees it, whatever they may see today."""
    may: MayDescribe

    def sees(self, entry: Entry) -> bool:
        return entry.principal == self.principal or all(
            self.may(Operation.DESCRIBE, *subject) for subject in (entry.subject, *entry.beside)
        )


def changes(viewer: Viewer, journal: Journal | None, found: Sequence[MetadataChange]) -> Page:
    sees_cluster = viewer.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    seen = [
        each
        for each in reversed(found)
        if (viewer.may(Operation.DESCRIBE, ResourceType.TOPIC, each.topic) if each.topic else sees_cluster)
    ]
    made = [] if journal is None else [each for each in journal.newest_first if viewer.sees(each)]
    rows = [
        MadeRow(each.number, each.at_ms, each.principal, each.title, each.outcome.value)
        for each in made[:MOST]
    ]
    view = ChangesView(rows, journal is not None, seen[:MOST], max(0, len(seen) - MOST), sees_cluster)
    return Page("changes.html", "Changes", "changes", view)


def change(viewer: Viewer, journal: Journal | None, number: int) -> Page:
    entry = None if journal is None else journal.entry(number)
    if entry is None or not viewer.sees(entry):
        raise NotThere(f"This console knows no change {number}, or you may not see it.")
    view = ChangeView(
        entry.number,
        entry.at_ms,
        entry.ended_ms,
        entry.principal,
        entry.host,
        entry.subject.type.name.lower(),
        entry.subject.name,
        entry.title,
        entry.told,
        entry.commands,
        entry.outcome.value,
        entry.steps,
        entry.said,
        entry.left if entry.outcome is not Outcome.BEGUN else None,
        entry.adds or (entry.outcome is not Outcome.BEGUN and entry.left is not None),
    )
    return Page("change.html", entry.title, "changes", view)

"""Audit: a calendar of windows. Which are proved, which differ, and what the tiers counted in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from headrace.audit.verdict import State, Verdict
from headrace.console.pages.page import Listing, NotThere, Page, Scene, listing, number_in
from headrace.doctor.model import Unknown
from headrace.observe.snapshot import certified_until

HOUR_MS: Final = 3_600_000
HOURS: Final = 24
_WORST_FIRST: Final = (State.DIFFERENT, State.INCOMPLETE, State.OPEN, State.CERTIFIED)
MOST_WINDOWS: Final = 500


class Hour(NamedTuple):
    begin_ms: int
    state: str
    """The worst of its windows; empty where there is none."""
    windows: int
    certified: int


class AuditRow(NamedTuple):
    topic: str
    hours: Sequence[Hour]
    windows: int
    different: int
    certified_until_ms: int | None


class AuditView(NamedTuple):
    listing: Listing[AuditRow]
    not_known: str
    is_there: bool
    hours: Sequence[int]
    """Where each column begins, in milliseconds."""
    counts: Mapping[str, int]


class Tier(NamedTuple):
    name: str
    records: int
    checksum: str


class WindowRow(NamedTuple):
    begin_ms: int
    length_ms: int
    state: str
    headline: str
    tiers: Sequence[Tier]
    differences: Sequence[str]
    decided_ms: int
    revision: int


class WindowsView(NamedTuple):
    topic: str
    begin_ms: int
    windows: Sequence[WindowRow]
    more: int


def audit(scene: Scene) -> Page:
    seen = scene.snapshot
    hours = [seen.at_ms // HOUR_MS * HOUR_MS - at * HOUR_MS for at in reversed(range(HOURS))]
    if not isinstance(seen.audit, Mapping):
        none: Listing[AuditRow] = Listing([], 0, 0, 1, 1, "topic", False, "")
        reason = seen.audit.reason if isinstance(seen.audit, Unknown) else ""
        return Page(
            "audit.html", "Audit", "audit", AuditView(none, reason, seen.audit is not None, hours, {})
        )
    rows = [_row(topic, verdicts, hours) for topic, verdicts in seen.audit.items()]
    keys = {
        "topic": attrgetter("topic"),
        "different": attrgetter("different"),
        "until": attrgetter("certified_until_ms"),
    }
    page = listing(rows, scene.query, keys, "topic", attrgetter("topic"))
    counts = {
        state.value: sum(verdict.state is state for verdicts in seen.audit.values() for verdict in verdicts)
        for state in State
    }
    return Page("audit.html", "Audit", "audit", AuditView(page, "", True, hours, counts))


def _row(topic: str, verdicts: Sequence[Verdict], hours: Sequence[int]) -> AuditRow:
    by_hour: dict[int, list[Verdict]] = {}
    for verdict in verdicts:
        by_hour.setdefault(verdict.window_ms // HOUR_MS * HOUR_MS, []).append(verdict)
    return AuditRow(
        topic,
        [_hour(begin, by_hour.get(begin, ())) for begin in hours],
        len(verdicts),
        sum(verdict.state is State.DIFFERENT for verdict in verdicts),
        certified_until(verdicts),
    )


def _hour(begin_ms: int, verdicts: Sequence[Verdict]) -> Hour:
    states = {verdict.state for verdict in verdicts}
    worst = next((state.value for state in _WORST_FIRST if state in states), "")
    certified = sum(verdict.state is State.CERTIFIED for verdict in verdicts)
    return Hour(begin_ms, worst, len(verdicts), certified)


def windows(scene: Scene, topic: str) -> Page:
    """Of one hour, or all of them."""
    seen = scene.snapshot
    if not isinstance(seen.audit, Mapping) or topic not in seen.audit:
        raise NotThere(f"The audit has nothing to say of topic {topic}, or you may not see it.")
    verdicts = seen.audit[topic]
    begin = number_in(scene.query, "hour", 0)
    if begin:
        verdicts = [each for each in verdicts if begin <= each.window_ms < begin + HOUR_MS]
    newest = list(reversed(verdicts))
    rows = [_window(verdict) for verdict in newest[:MOST_WINDOWS]]
    view = WindowsView(topic, begin, rows, max(0, len(newest) - MOST_WINDOWS))
    return Page("windows.html", f"Audit of {topic}", "audit", view)


def _window(verdict: Verdict) -> WindowRow:
    return WindowRow(
        verdict.window_ms,
        verdict.length_ms,
        verdict.state.value,
        verdict.headline,
        [Tier(name, tally.count, str(tally.checksum)) for name, tally in verdict.tiers.items()],
        [str(difference) for difference in verdict.differences],
        verdict.decided_ms,
        verdict.revision,
    )

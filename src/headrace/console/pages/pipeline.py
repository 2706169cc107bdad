"""Pipeline: connectors and mirrors, each as the group to which it commits how far it is.

Lakes and tables have groups of any name, among all others, and the page says which command tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.console.pages.page import Page, Scene
from headrace.doctor.model import Unknown
from headrace.observe.history import Track, coarser
from headrace.observe.snapshot import GroupSeen

POINTS: Final = 36
CONNECTORS: Final = "connect-"
MIRRORS: Final = "mirror-"
KINDS: Final = ((CONNECTORS, "Connectors"), (MIRRORS, "Mirrors that read here"))


class Job(NamedTuple):
    group: str
    name: str
    topics: Sequence[str]
    lag: int | None
    late_ms: int | None
    rate: float | None
    trend: Sequence[float | None]


class Kind(NamedTuple):
    title: str
    jobs: Sequence[Job]


class PipelineView(NamedTuple):
    kinds: Sequence[Kind]
    not_known: str


def pipeline(scene: Scene) -> Page:
    seen = scene.snapshot
    if isinstance(seen.groups, Unknown):
        return Page("pipeline.html", "Pipeline", "pipeline", PipelineView([], seen.groups.reason))
    kinds = []
    for prefix, title in KINDS:
        theirs = jobs(scene, prefix)
        if theirs:
            kinds.append(Kind(title, theirs))
    return Page("pipeline.html", "Pipeline", "pipeline", PipelineView(kinds, ""))


def jobs(scene: Scene, prefix: str) -> list[Job]:
    """Of groups whose names begin so; the one that is furthest behind first."""
    groups = scene.snapshot.groups
    if isinstance(groups, Unknown):
        return []
    theirs = [group for name, group in groups.items() if name.startswith(prefix)]
    theirs.sort(key=lambda group: (-(group.late_ms or 0), group.group_id))
    return [job(scene, group, prefix) for group in theirs]


def job(scene: Scene, group: GroupSeen, prefix: str) -> Job:
    return Job(
        group.group_id,
        group.group_id.removeprefix(prefix),
        group.topics,
        group.lag,
        group.late_ms,
        group.rate,
        coarser(scene.history.of(Track.LATE, group.group_id, scene.snapshot.at_ms), POINTS, mean=False),
    )

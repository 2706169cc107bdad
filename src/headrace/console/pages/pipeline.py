"""Pipeline: connectors, each as the group to which its sink commits how far it is.

Groups of the lake, tables and mirrors have names that their owners choose: they are among all groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.console.pages.page import Page, Scene
from headrace.doctor.model import Unknown
from headrace.observe.history import Track, coarser
from headrace.observe.snapshot import GroupSeen

POINTS: Final = 36
KINDS: Final = (("connect-", "Connectors"),)


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
        theirs = [group for name, group in seen.groups.items() if name.startswith(prefix)]
        if theirs:
            theirs.sort(key=lambda group: (-(group.late_ms or 0), group.group_id))
            kinds.append(Kind(title, [_job(scene, group, prefix) for group in theirs]))
    return Page("pipeline.html", "Pipeline", "pipeline", PipelineView(kinds, ""))


def _job(scene: Scene, group: GroupSeen, prefix: str) -> Job:
    return Job(
        group.group_id,
        group.group_id.removeprefix(prefix),
        group.topics,
        group.lag,
        group.late_ms,
        group.rate,
        coarser(scene.history.of(Track.LATE, group.group_id, scene.snapshot.at_ms), POINTS, mean=False),
    )

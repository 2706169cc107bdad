"""Connectors and mirrors: how each is, where it runs, how far it is, and why it failed."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from headrace.client.shell_words import command
from headrace.console.pages.page import Listing, NotThere, Page, Scene, listing
from headrace.console.pages.pipeline import CONNECTORS, MIRRORS, Job, job, jobs
from headrace.console.pages.standing import Standing
from headrace.console.services.connect import Connector, ConnectSeen, Part, Task
from headrace.doctor.model import Unknown

TRANSLATIONS: Final = "__headrace_mirror_"
"""Before the name of a mirror: the topic at its target in which it keeps translated offsets."""
_WORST_FIRST: Final = ("FAILED", "", "UNASSIGNED", "RESTARTING", "STOPPED", "PAUSED")


class ConnectorRow(NamedTuple):
    name: str
    kind: str
    plugin: str
    condition: str
    running: int
    tasks: int
    worker: str
    lag: int | None
    late_ms: int | None
    group: str
    """Empty where no group says how far it is."""
    error: str
    """The first line of why it failed."""
    badness: int


class Arriving(NamedTuple):
    """A mirror that writes to this cluster."""

    name: str
    topic: str
    rate: float | None


class ConnectorsView(NamedTuple):
    standing: Standing
    listing: Listing[ConnectorRow] | None
    elsewhere: str
    """Another cluster for which the workers work; empty where it is this one."""
    leaving: Sequence[Job]
    """Mirrors that read from this cluster."""
    arriving: Sequence[Arriving]
    groups: str
    """Why no group is known; empty where they are."""


class ConnectorView(NamedTuple):
    standing: Standing
    name: str
    kind: str
    plugin: str
    condition: str
    itself: Part
    tasks: Sequence[Task]
    settings: Sequence[tuple[str, str]]
    traces: Sequence[tuple[str, str, str]]
    """Of what, in one line, and whole; each trace once."""
    elsewhere: str
    progress: Job | None
    no_progress: str
    """Why there is none."""


KEYS: Final = {
    name: attrgetter(field)
    for name, field in (
        ("name", "name"),
        ("type", "kind"),
        ("state", "badness"),
        ("tasks", "tasks"),
        ("worker", "worker"),
        ("lag", "lag"),
        ("late", "late_ms"),
    )
}


def connectors(standing: Standing, seen: ConnectSeen | None, scene: Scene) -> Page:
    elsewhere, page = "", None
    if seen is not None and standing.is_known:
        elsewhere = _elsewhere(seen, scene)
        rows = [_row(each, scene, elsewhere) for each in seen.connectors.values()]
        page = listing(rows, scene.query, KEYS, "name", attrgetter("name"))
    groups = scene.snapshot.groups
    view = ConnectorsView(
        standing,
        page,
        elsewhere,
        jobs(scene, MIRRORS),
        [
            Arriving(name.removeprefix(TRANSLATIONS), name, topic.rate_in)
            for name, topic in scene.snapshot.topics.items()
            if name.startswith(TRANSLATIONS)
        ],
        groups.reason if isinstance(groups, Unknown) else "",
    )
    return Page("connectors.html", "Connectors and mirrors", "connectors", view)


def _elsewhere(seen: ConnectSeen, scene: Scene) -> str:
    """Groups of one name on two clusters are two groups."""
    here = scene.snapshot.view.cluster_id
    return seen.cluster_id if seen.cluster_id and here and seen.cluster_id != here else ""


def _progress(found: Connector, scene: Scene, elsewhere: str) -> Job | None:
    groups = scene.snapshot.groups
    if elsewhere or found.kind != "sink" or isinstance(groups, Unknown):
        return None
    group = groups.get(f"{CONNECTORS}{found.name}")
    return None if group is None else job(scene, group, CONNECTORS)


def _row(found: Connector, scene: Scene, elsewhere: str) -> ConnectorRow:
    progress = _progress(found, scene, elsewhere)
    condition = found.condition
    return ConnectorRow(
        found.name,
        found.kind,
        found.plugin.rpartition(".")[2],
        condition,
        sum(task.part.state == "RUNNING" for task in found.tasks),
        len(found.tasks),
        found.itself.worker,
        None if progress is None else progress.lag,
        None if progress is None else progress.late_ms,
        "" if progress is None else progress.group,
        _first_line(found.trace),
        _WORST_FIRST.index(condition) if condition in _WORST_FIRST else len(_WORST_FIRST),
    )


def connector(standing: Standing, seen: ConnectSeen, name: str, scene: Scene) -> Page:
    """Raises NotThere."""
    found = seen.connectors.get(name)
    if found is None:
        raise NotThere(f"There is no connector {name}.")
    elsewhere = _elsewhere(seen, scene)
    progress = _progress(found, scene, elsewhere)
    view = ConnectorView(
        standing,
        name,
        found.kind,
        found.plugin,
        found.condition,
        found.itself,
        found.tasks,
        found.settings,
        _traces(found),
        elsewhere,
        progress,
        "" if progress is not None else _no_progress(found, scene, elsewhere),
    )
    return Page("connector.html", name, "connectors", view)


def _traces(found: Connector) -> list[tuple[str, str, str]]:
    named = [("the connector", found.itself), *((f"task {each.number}", each.part) for each in found.tasks)]
    first: dict[str, str] = {}
    for what, part in named:
        if part.trace:
            first.setdefault(part.trace, what)
    return [(what, _first_line(trace), trace) for trace, what in first.items()]


def _no_progress(found: Connector, scene: Scene, elsewhere: str) -> str:
    if elsewhere:
        return f"It works for cluster {elsewhere}, which this console does not look at."
    if found.kind != "sink":
        return f"No group says how far a source is. `{command('headrace connect offsets', found.name)}` does."
    groups = scene.snapshot.groups
    if isinstance(groups, Unknown):
        return f"Groups cannot be asked now: {groups.reason}"
    return f"Group {CONNECTORS}{found.name} has committed nothing yet, or you may not see it."


def _first_line(trace: str) -> str:
    line = next((each.strip() for each in trace.splitlines() if each.strip()), "")
    return line if len(line) <= 200 else f"{line[:200]}…"

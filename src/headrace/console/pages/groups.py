"""Groups: who reads, and how far behind each of them is."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from headrace.console.pages.page import Listing, NotThere, Page, Scene, listing
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.history import Track, coarser
from headrace.observe.snapshot import GroupSeen, Rail

POINTS: Final = 36


class GroupRow(NamedTuple):
    name: str
    kind: str
    state: str
    members: int
    topics: int
    partitions: int
    lag: int | None
    late_ms: int | None
    rate: float | None
    left_seconds: float | None
    """Until it has caught up, at the speed of now. None: it has, or is not going to, or nobody knows."""
    not_known: str
    trend: Sequence[float | None] = ()


class GroupsView(NamedTuple):
    listing: Listing[GroupRow]
    not_known: str
    """Why there are none; empty where they are known."""
    behind: int
    idle: int
    """With records to read, and without members."""
    doubtful: int
    """Of which it is not known whether they have read everything."""


class RailRow(NamedTuple):
    partition: TopicPartition
    first: int | None
    committed: int | None
    end: int | None
    stable: int | None
    """Where an open transaction holds readers of committed records; None where none does."""
    lag: int | None
    missed: int
    late_ms: int | None
    client: str
    pending: bool

    @property
    def mark(self) -> float | None:
        """Where the commit stands between the first record and the end, from 0 to 1."""
        if self.first is None or self.end is None:
            return None
        if self.committed is None:
            return 0.0
        length = self.end - self.first
        return 1.0 if length <= 0 else min(1.0, max(0.0, (self.committed - self.first) / length))


class GroupView(NamedTuple):
    name: str
    kind: str
    state: str
    protocol_type: str
    coordinator: int
    clients: Sequence[str]
    members: int
    lag: int | None
    late_ms: int | None
    rate: float | None
    left_seconds: float | None
    rails: Sequence[RailRow]
    not_known: str
    sentences: Sequence[str]
    trend_lag: Sequence[float | None]
    trend_late: Sequence[float | None]


KEYS: Final = {
    name: attrgetter(field)
    for name, field in (
        ("name", "name"),
        ("state", "state"),
        ("members", "members"),
        ("partitions", "partitions"),
        ("lag", "lag"),
        ("late", "late_ms"),
        ("rate", "rate"),
        ("left", "left_seconds"),
    )
}


def groups(scene: Scene) -> Page:
    seen = scene.snapshot
    if isinstance(seen.groups, Unknown):
        none: Listing[GroupRow] = Listing([], 0, 0, 1, 1, "late", True, "")
        return Page("groups.html", "Groups", "groups", GroupsView(none, seen.groups.reason, 0, 0, 0))
    rows = [_row(group) for group in seen.groups.values()]
    page = listing(rows, scene.query, KEYS, "-late", attrgetter("name"))
    shown = [
        row._replace(trend=coarser(scene.history.of(Track.LAG, row.name, seen.at_ms), POINTS, mean=False))
        for row in page.rows
    ]
    view = GroupsView(
        page._replace(rows=shown),
        "",
        sum(bool(row.lag) for row in rows),
        sum(bool(row.lag) and not row.members for row in rows),
        sum(row.lag is None for row in rows),
    )
    return Page("groups.html", "Groups", "groups", view)


def _row(group: GroupSeen) -> GroupRow:
    rails: Sequence[Rail] = () if isinstance(group.rails, Unknown) else group.rails
    return GroupRow(
        group.group_id,
        group.kind,
        group.state,
        group.members,
        len(group.topics),
        len(rails),
        group.lag,
        group.late_ms,
        group.rate,
        _left(group),
        group.rails.reason if isinstance(group.rails, Unknown) else "",
    )


def _left(group: GroupSeen) -> float | None:
    return group.lag / group.rate if group.lag and group.rate else None


def group(scene: Scene, name: str) -> Page:
    seen = scene.snapshot
    if isinstance(seen.groups, Unknown):
        raise NotThere(seen.groups.reason)
    found = seen.groups.get(name)
    if found is None:
        raise NotThere(f"There is no group {name}, or you may not see it.")
    rails: Sequence[Rail] = () if isinstance(found.rails, Unknown) else found.rails
    view = GroupView(
        name,
        found.kind,
        found.state,
        found.protocol_type,
        found.coordinator,
        found.clients,
        found.members,
        found.lag,
        found.late_ms,
        found.rate,
        _left(found),
        [_rail(rail) for rail in rails],
        found.rails.reason if isinstance(found.rails, Unknown) else "",
        _sentences(found, rails),
        coarser(scene.history.of(Track.LAG, name, seen.at_ms), 90, mean=False),
        coarser(scene.history.of(Track.LATE, name, seen.at_ms), 90, mean=False),
    )
    return Page("group.html", name, "groups", view)


def _rail(rail: Rail) -> RailRow:
    ends = rail.ends
    return RailRow(
        rail.partition,
        None if ends is None else ends.first,
        rail.committed,
        None if ends is None else ends.end,
        ends.stable if ends is not None and rail.held else None,
        rail.lag,
        rail.missed,
        rail.late_ms,
        rail.client,
        rail.pending,
    )


def _sentences(found: GroupSeen, rails: Sequence[Rail]) -> list[str]:
    """What numbers do not say: why a lag will not shrink by itself."""
    said = []
    if found.lag and not found.members:
        said.append("Nobody reads: the group has no members.")
    unowned = [rail for rail in rails if rail.lag and not rail.client]
    if unowned and found.members:
        named = ", ".join(str(rail.partition) for rail in unowned[:4])
        more = f" and {len(unowned) - 4} more" if len(unowned) > 4 else ""
        said.append(f"No member reads {named}{more}.")
    missed = sum(rail.missed for rail in rails)
    if missed:
        said.append(f"{missed:,} records were removed before the group read them.")
    held = [rail.partition for rail in rails if rail.held]
    if held:
        said.append(
            f"An open transaction holds readers of committed records in {held[0]}"
            f"{f' and {len(held) - 1} more' if len(held) > 1 else ''}:"
            " `headrace txn find-hanging --all` shows whose it is."
        )
    silent = [rail.partition for rail in rails if rail.ends is None]
    if silent:
        said.append(f"The leader of {silent[0]} cannot be asked, so the sum is not known.")
    unread = sum(rail.lag or 0 for rail in rails if rail.committed is None)
    if unread:
        said.append(f"{unread:,} records lie in partitions in which nothing was committed yet.")
    return said

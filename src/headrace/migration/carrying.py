"""Committed offsets of groups. The links keep them up to date while both clusters run; what they cannot do
any more once they are promoted, this does itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.client import groups, links
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.group_offsets import Committed, commit_offsets, committed_offsets, delete_offsets
from headrace.client.groups import ListedGroup
from headrace.core.ids import TopicPartition
from headrace.migration.ends import Both
from headrace.migration.group_plan import is_wanted, to_commit
from headrace.migration.linking import Save, Tell
from headrace.migration.state import Migration
from headrace.protocol.error_codes import ErrorCode

_KINDS: Final = ("classic", "consumer", "")
_MEMBERLESS: Final = ("Empty", "Dead", "")


class Carried(NamedTuple):
    group_id: str
    state_there: str
    partitions: int
    """With a committed offset at the source, of these topics."""
    behind: int
    """Records between its offsets and the ends at the target."""
    refused: str | None
    """Why its offsets were not written."""
    is_pending: bool
    """A transaction that is open at the source will change its offsets, if it commits."""

    @property
    def has_members_there(self) -> bool:
        return self.state_there not in _MEMBERLESS

    @property
    def words(self) -> str:
        if self.refused is not None:
            return self.refused
        if self.is_pending:
            return "carried; an open transaction has newer offsets"
        return "carried, and members at the source go on" if self.has_members_there else "carried"


async def wanted_groups(source: Cluster, patterns: list[str]) -> list[ListedGroup]:
    listed = await groups.list_groups(source)
    return [each for each in listed if each.kind in _KINDS and is_wanted(each.group_id, patterns)]


async def carry(
    both: Both, migration: Migration, limits: Mapping[TopicPartition, int], *, only_forward: bool = False
) -> list[Carried]:
    """Commit at the target what is committed at the source, up to `limits`: where the copies end. A group
    with members at the target is refused by its coordinator, and left alone."""
    listed = await wanted_groups(both.source, migration.group_patterns)
    names = [each.group_id for each in listed]
    if not names or not limits:
        return []
    there = await committed_offsets(both.source, names, limits)
    here = await committed_offsets(both.target, names, limits)
    carried = []
    for each in listed:
        offsets = there[each.group_id]
        if offsets:
            todo = to_commit(offsets, here[each.group_id], limits, only_forward=only_forward)
            refused = await _commit(both.target, each.group_id, todo, offsets)
            carried.append(_carried(each, offsets, limits, refused))
    return carried


def _carried(
    group: ListedGroup,
    offsets: Mapping[TopicPartition, Committed],
    limits: Mapping[TopicPartition, int],
    refused: str | None,
) -> Carried:
    behind = sum(max(0, limits[name] - each.offset) for name, each in offsets.items() if name in limits)
    pending = any(each.pending for each in offsets.values())
    return Carried(group.group_id, group.state, len(offsets), behind, refused, pending)


async def _commit(
    target: Cluster,
    group_id: str,
    todo: Mapping[TopicPartition, int],
    offsets: Mapping[TopicPartition, Committed],
) -> str | None:
    if not todo:
        return None
    try:
        await commit_offsets(target, group_id, todo, {name: offsets[name].metadata for name in todo})
    except Refused as error:
        if error.code == ErrorCode.NON_EMPTY_GROUP:
            return "it has members at the target: left as it is there"
        return str(error)
    return None


async def begin(both: Both, migration: Migration, save: Save) -> None:
    """From now on the links carry them, every two seconds."""
    migration.carries_groups = True
    save()
    await _tell_links(both.target, migration, ",".join(migration.group_patterns))


async def undo(both: Both, migration: Migration, save: Save, tell: Tell) -> None:
    """The links carry no more, and what they have carried goes, but for groups with members at the target."""
    await _tell_links(both.target, migration, None)
    known = [each.group_id for each in await groups.list_groups(both.target)]
    wanted = [name for name in known if is_wanted(name, migration.group_patterns)]
    for name, offsets in (await committed_offsets(both.target, wanted)).items():
        ours = [partition for partition in offsets if partition.topic in migration.topics]
        if not ours:
            continue
        try:
            refused = [each for each in (await delete_offsets(both.target, name, ours)).values() if each]
        except Refused as error:
            refused = [error]
        tell(f"group {name}: {refused[0] if refused else 'offsets of these topics are gone at the target'}")
    migration.carries_groups = False
    save()


async def _tell_links(target: Cluster, migration: Migration, patterns: str | None) -> None:
    for name in migration.topics:
        values = await links.values_of(target, name)
        if values and values.get(links.STATE) in (links.ACTIVE, links.PAUSED):
            await links.alter(target, name, {links.GROUPS: patterns})

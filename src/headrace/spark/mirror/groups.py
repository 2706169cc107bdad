"""Committed offsets of groups, carried over while nobody reads there.

Only exact offsets are carried: one whose record is not mirrored yet waits for it. What the mirror has
committed says so in its metadata. An offset that somebody else has committed since belongs to readers who
have moved over, and is never touched again: they may have no members just now, while they are restarted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.group_offsets import Committed, commit_offsets, committed_offsets
from headrace.client.groups import CONSUMER_PROTOCOL, Group, ListedGroup, describe_groups, list_groups
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.spark.mirror.clusters import Sides
from headrace.spark.mirror.config import Groups
from headrace.spark.mirror.position import Position
from headrace.spark.mirror.translation import Place, Translation

_MARK: Final = "headrace-mirror"

State = Literal["carried", "behind", "in use", "moved"]
"""`carried`: the target has the exact offset. `behind`: its record is not mirrored yet. `in use`: the group
has members on the target. `moved`: its members have committed there."""


class Carried(NamedTuple):
    """One offset of a group."""

    group: str
    topic: str
    partition: int
    source_offset: int
    target: str
    target_offset: int | None
    """None while it cannot be told exactly."""
    there: int | None
    """What is committed on the target."""
    state: State


class Carrying(NamedTuple):
    """What is to be committed on the target, by group and the target's partition."""

    offsets: Mapping[str, Mapping[TopicPartition, int]]
    metadata: Mapping[str, Mapping[TopicPartition, str]]
    shown: list[Carried]


class Sight(NamedTuple):
    """What both clusters told of groups."""

    source: Mapping[str, Mapping[TopicPartition, Committed]]
    target: Mapping[str, Mapping[TopicPartition, Committed]]
    in_use: frozenset[str]
    """With members on the target."""


def mark(name: str, source_offset: int) -> str:
    return f"{_MARK} {name} {source_offset}"


def is_ours(metadata: str) -> bool:
    return metadata.startswith(f"{_MARK} ")


def decide(
    name: str,
    sight: Sight,
    position: Position,
    translation: Translation,
    coming: Mapping[str, str] | None = None,
) -> Carrying:
    """`coming`: topics that the mirror has not begun with, and what they are called on the target. Offsets of
    them are behind."""
    found = Carrying({}, {}, [])
    names = {**(coming or {}), **{topic: at.target for topic, at in position.topics.items()}}
    offsets: dict[str, dict[TopicPartition, int]] = {}
    metadata: dict[str, dict[TopicPartition, str]] = {}
    shown: list[Carried] = []
    for group, committed in sorted(sight.source.items()):
        theirs = sight.target.get(group, {})
        mirrored = [(each, at) for each, at in sorted(committed.items()) if each.topic in names]
        targets = {each: TopicPartition(names[each.topic], each.partition) for each, _ in mirrored}
        moved = any(target in theirs and not is_ours(theirs[target].metadata) for target in targets.values())
        for each, at in mirrored:
            target = targets[each]
            exact = translated(position, translation, each, at.offset)
            there = theirs.get(target)
            state: State = "carried"
            if group in sight.in_use:
                state = "in use"
            elif moved:
                state = "moved"
            elif exact is None:
                state = "behind"
            elif there is None or (there.offset, there.metadata) != (exact, mark(name, at.offset)):
                offsets.setdefault(group, {})[target] = exact
                metadata.setdefault(group, {})[target] = mark(name, at.offset)
            shown.append(
                Carried(
                    group,
                    each.topic,
                    each.partition,
                    at.offset,
                    target.topic,
                    exact,
                    None if there is None else there.offset,
                    state,
                )
            )
    return found._replace(offsets=offsets, metadata=metadata, shown=shown)


def translated(position: Position, translation: Translation, each: TopicPartition, offset: int) -> int | None:
    """None where its record is not mirrored yet, or the topic is none of the mirror's."""
    mirrored = position.at(each.topic, each.partition)
    if mirrored is None or offset > mirrored:
        return None
    place = Place(each.topic, position.topics[each.topic].id, each.partition)
    return translation.translate(place, offset)


async def sight(sides: Sides, groups: Groups) -> Sight:
    names = [each.group_id for each in await list_groups(sides.source) if _is_reader(each, groups)]
    source = await committed_offsets(sides.source, names)
    target = await committed_offsets(sides.target, names)
    return Sight(source, target, await _in_use(sides.target, names))


def _is_reader(group: ListedGroup, groups: Groups) -> bool:
    of_topics = group.protocol_type in ("", CONSUMER_PROTOCOL) and group.kind in ("", "classic", "consumer")
    return of_topics and groups.matches(group.group_id)


async def _in_use(cluster: Cluster, names: Iterable[str]) -> frozenset[str]:
    described = await describe_groups(cluster, names)
    for outcome in described.values():
        if isinstance(outcome, Refused) and outcome.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise outcome
    return frozenset(name for name, each in described.items() if isinstance(each, Group) and each.members)


async def carry(sides: Sides, name: str, groups: Groups, position: Position, translation: Translation) -> int:
    """How many offsets were committed on the target. A group that somebody joins meanwhile refuses."""
    carrying = decide(name, await sight(sides, groups), position, translation)
    done = 0
    for group, offsets in carrying.offsets.items():
        try:
            await commit_offsets(sides.target, group, offsets, carrying.metadata[group])
        except Refused as error:
            if error.code != ErrorCode.NON_EMPTY_GROUP:
                raise
        else:
            done += len(offsets)
    return done

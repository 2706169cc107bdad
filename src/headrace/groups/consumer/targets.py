"""Computing what all members of a group are meant to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from headrace.coordinators.decision import CoordinatorRecord
from headrace.groups.consumer import records
from headrace.groups.consumer.assignors.range import assign_ranges
from headrace.groups.consumer.assignors.spec import Assignor, GroupSpec, MemberSpec
from headrace.groups.consumer.assignors.uniform import assign_uniformly
from headrace.groups.consumer.group import NO_TARGET, ConsumerGroup, Target
from headrace.groups.consumer.member import ConsumerMember
from headrace.groups.consumer.resolved_regex import ResolvedRegex
from headrace.groups.consumer.subscriptions import topics_of
from headrace.groups.topics_view import TopicsView

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}


class NewTarget(NamedTuple):
    records: list[CoordinatorRecord]
    of_member: Target


def may_compute(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Not again within the interval, so that members who come together are assigned together. A time that is
    still to come was told by another broker's clock, or by one that was put back: it is not waited for."""
    last_ms = group.assignment_timestamp_ms
    return last_ms == 0 or now_ms < last_ms or now_ms >= last_ms + interval_ms


def compute_target(
    group: ConsumerGroup,
    epoch: int,
    member: ConsumerMember,
    assignor: str,
    resolved: Mapping[str, ResolvedRegex],
    topics: TopicsView,
    now_ms: int,
) -> NewTarget:
    """The target of the group with `member` in it as it is now, in the place of the one before.

    Only what differs from the present target is written.
    """
    before: dict[str, Target] = {}
    members: dict[str, ConsumerMember] = {}
    replaced = group.static_members.get(member.instance_id) if member.instance_id is not None else None
    for member_id, other in group.members.items():
        if member_id != replaced:
            members[member_id] = other
            before[member_id] = group.targets.get(member_id, NO_TARGET)
    members[member.member_id] = member
    before[member.member_id] = group.target_of(member)
    spec = _spec(members, before, resolved, topics)
    assigned = ASSIGNORS[assignor](spec)
    written = [
        records.target(group.group_id, member_id, assigned.get(member_id, NO_TARGET))
        for member_id in members
        if group.targets.get(member_id) != assigned.get(member_id, NO_TARGET)
    ]
    written.append(records.target_epoch(group.group_id, epoch, now_ms))
    return NewTarget(written, assigned.get(member.member_id, NO_TARGET))


def _spec(
    members: Mapping[str, ConsumerMember],
    before: Mapping[str, Target],
    resolved: Mapping[str, ResolvedRegex],
    topics: TopicsView,
) -> GroupSpec:
    counts: dict[UUID, int] = {}
    ids_of: dict[frozenset[str], tuple[UUID, ...]] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members.items():
        names = topics_of(member, resolved)
        ids = ids_of.get(names)
        if ids is None:
            ids = ids_of[names] = _existing(names, topics, counts)
        specs[member_id] = MemberSpec(member.instance_id, ids, before[member_id])
    return GroupSpec(specs, counts)


def _existing(names: frozenset[str], topics: TopicsView, counts: dict[UUID, int]) -> tuple[UUID, ...]:
    """The ids of those topics that exist, by name; their partitions are counted into `counts`."""
    ids = []
    for name in sorted(names):
        topic_id, count = topics.id_of(name), topics.partition_count(name)
        if topic_id is not None and count is not None:
            ids.append(topic_id)
            counts[topic_id] = count
    return tuple(ids)

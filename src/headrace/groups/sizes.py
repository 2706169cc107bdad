"""About how much memory the groups of a shard take: what peers sent, and what each object costs besides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.member import ClassicMember
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import ConsumerMember
from headrace.groups.group import Group

GROUP_BYTES: Final = 1500
MEMBER_BYTES: Final = 1500
"""Its object, its places in tables, and its timer."""
PENDING_BYTES: Final = 700
ITEM_BYTES: Final = 100
"""A topic or a partition of a subscription or an assignment."""


def size_of(groups: Iterable[Group]) -> int:
    return sum(_size_of_group(group) for group in groups)


def _size_of_group(group: Group) -> int:
    size = GROUP_BYTES + len(group.group_id)
    if isinstance(group, ClassicGroup):
        size += sum(_size_of_classic(member) for member in group.members.values())
        size += sum(PENDING_BYTES + len(member_id) for member_id in group.pending_joins)
    elif isinstance(group, ConsumerGroup):
        size += sum(_size_of_consumer(member) for member in group.members.values())
        size += sum(ITEM_BYTES * len(parts) for each in group.targets.values() for parts in each.values())
        size += sum(ITEM_BYTES * len(found.topics) for found in group.resolved.values())
    return size


def _size_of_classic(member: ClassicMember) -> int:
    size = MEMBER_BYTES + len(member.member_id) + len(member.client_id) + len(member.instance_id or "")
    return size + len(member.assignment) + sum(len(name) + len(data) for name, data in member.protocols)


def _size_of_consumer(member: ConsumerMember) -> int:
    size = MEMBER_BYTES + len(member.member_id) + len(member.client_id) + len(member.instance_id or "")
    size += len(member.subscribed_regex) + sum(ITEM_BYTES + len(name) for name in member.subscribed_names)
    for held in (member.assigned, member.pending_revocation):
        size += sum(ITEM_BYTES * len(partitions) for partitions in held.values())
    if member.classic is not None:
        size += sum(len(each.name) + len(each.metadata) for each in member.classic.supported_protocols)
    return size

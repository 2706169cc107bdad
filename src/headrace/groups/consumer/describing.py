"""ConsumerGroupDescribe: a group and its members as admins see them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from headrace.groups.consumer.group import NO_TARGET, ConsumerGroup
from headrace.groups.consumer.member import ConsumerMember
from headrace.groups.topics_view import TopicsView
from headrace.protocol.messages.consumer_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


def describe(group: ConsumerGroup, default_assignor: str, topics: TopicsView) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(None, None) or default_assignor,
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: TopicsView) -> Member:
    """What it is about to give up is still its own."""
    held: dict[UUID, list[int]] = {}
    for part in (member.assigned, member.pending_revocation):
        for topic_id, partitions in part.items():
            held.setdefault(topic_id, []).extend(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_names),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(held, topics),
        target_assignment=_assignment(group.targets.get(member.member_id, NO_TARGET), topics),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Mapping[UUID, Collection[int]], topics: TopicsView) -> Assignment:
    """Topics that are gone are left out: they have no name any more."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if (name := topics.name_of(topic_id)) is not None
        ]
    )

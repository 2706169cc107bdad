"""Which topics the members of a group mean: the names that they give, and what their patterns match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import ConsumerMember
from headrace.groups.consumer.resolved_regex import ResolvedRegex
from headrace.groups.topics_view import TopicsView


def topics_of(member: ConsumerMember, resolved: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Their names. A pattern that has not been looked up yet matches nothing."""
    found = resolved.get(member.subscribed_regex) if member.subscribed_regex else None
    if found is None or not found.topics:
        return member.subscribed_names
    return member.subscribed_names | found.topics if member.subscribed_names else found.topics


def topics_of_all(
    group: ConsumerGroup,
    resolved: Mapping[str, ResolvedRegex],
    *,
    leaving: Iterable[ConsumerMember] = (),
    joining: ConsumerMember | None = None,
) -> set[str]:
    """The topics of the group without some members and with another. `resolved` must hold no pattern that
    nobody means any more."""
    left: dict[str, int] = {}
    for member in leaving:
        for name in member.subscribed_names:
            left[name] = left.get(name, 0) + 1
    names = {name for name, count in group.topic_counts.items() if count > left.get(name, 0)}
    if joining is not None:
        names |= joining.subscribed_names
    for found in resolved.values():
        names |= found.topics
    return names


class SubscribedIds:
    """Whether one member subscribes to a topic, asked by the topic's id."""

    __slots__ = ("_names", "_topics")

    def __init__(self, names: frozenset[str], topics: TopicsView) -> None:
        self._names = names
        self._topics = topics

    def __call__(self, topic_id: UUID) -> bool:
        name = self._topics.name_of(topic_id)
        return name is not None and name in self._names

"""Who subscribes to what, for topics and members by the thousand.

Members with equal subscriptions share one collection of topics, so that most of the work is done once for all
of them instead of once for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from headrace.groups.consumer.assignors.spec import GroupSpec


class Bunch(NamedTuple):
    """Topics that have the same subscribers."""

    members: list[str]
    topics: list[UUID]


def bunches(group: GroupSpec, order: Iterable[str]) -> list[Bunch]:
    """All topics that anybody subscribes to; the members of each bunch come in the given order."""
    classes: dict[int, int] = {}
    class_of: dict[str, int] = {}
    classes_of_topic: dict[UUID, list[int]] = {}
    for member_id in order:
        topics = group.members[member_id].topics
        known = classes.get(id(topics))
        if known is None:
            known = classes[id(topics)] = len(classes)
            for topic_id in topics:
                classes_of_topic.setdefault(topic_id, []).append(known)
        class_of[member_id] = known
    topics_of: dict[tuple[int, ...], list[UUID]] = {}
    for topic_id, subscribing in classes_of_topic.items():
        topics_of.setdefault(tuple(subscribing), []).append(topic_id)
    return [
        Bunch([member_id for member_id, each in class_of.items() if each in subscribing], topics)
        for subscribing, topics in topics_of.items()
    ]

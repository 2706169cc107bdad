"""What groups read, and whether they rest: asked once for all, and states once more for the second look."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.group_offsets import Committed, committed_offsets
from headrace.client.groups import CLASSIC, CONSUMER, Group, describe_groups, list_groups
from headrace.core.ids import TopicPartition
from headrace.doctor.facts import GroupFacts, GroupLook


class GroupQuestions:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._described: Mapping[str, Group | Refused] = {}

    async def look(self) -> dict[str, GroupLook]:
        """At groups with members."""
        listed = await list_groups(self._cluster)
        # Brokers that are too old to name the kind have classic groups alone.
        names = [group.group_id for group in listed if group.kind in ("", CLASSIC, CONSUMER)]
        self._described = await describe_groups(self._cluster, names)
        return {
            name: GroupLook(group.state, group.epoch)
            for name, group in self._described.items()
            if isinstance(group, Group) and group.members
        }

    async def facts(self) -> dict[str, GroupFacts]:
        """Of the groups that the last look has seen."""
        there = {name: group for name, group in self._described.items() if isinstance(group, Group)}
        committed = await committed_offsets(self._cluster, there)
        return {name: _facts(group, committed[name]) for name, group in there.items()}


def _facts(group: Group, committed: Mapping[TopicPartition, Committed]) -> GroupFacts:
    subscribed = {topic for member in group.members for topic in member.topics or ()}
    owned = {partition.topic for partition in group.owners}
    return GroupFacts(
        group.group_id,
        group.state,
        len(group.members),
        group.reads_whole_topics,
        {partition: each.offset for partition, each in committed.items()},
        frozenset(subscribed | owned),
    )

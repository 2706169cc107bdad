"""ListGroups: the groups of one shard that have one of these states, and one of these types."""

from __future__ import annotations

from collections.abc import Iterable, Set

from headrace.groups.group_table import GroupTable
from headrace.protocol.messages.list_groups_response import ListedGroup


def filter_of(names: Iterable[str]) -> frozenset[str]:
    """Capitals count as small letters."""
    return frozenset(name.strip().lower() for name in names)


def list_groups(groups: GroupTable, states: Set[str], types: Set[str]) -> list[ListedGroup]:
    """Filters are made by `filter_of`. An empty one lets everything pass, an unknown name nothing."""
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.type.value,
        )
        for group in groups
        if (not states or group.state_name.lower() in states) and (not types or group.type.value in types)
    ]

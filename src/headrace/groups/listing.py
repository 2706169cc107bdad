"""ListGroups: the groups of one shard that have one of these states, and one of these types."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.groups.group_table import GroupTable
from headrace.protocol.messages.list_groups_response import ListedGroup


def list_groups(groups: GroupTable, states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
    """Filters take capitals as small letters. An empty one lets everything pass; a name that nobody knows,
    nothing."""
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {name.strip().lower() for name in types}
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.type.value,
        )
        for group in groups
        if (not wanted_states or group.state_name.lower() in wanted_states)
        and (not wanted_types or group.type.value in wanted_types)
    ]

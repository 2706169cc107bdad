"""DescribeGroups: a classic group as admins see it."""

from __future__ import annotations

from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.states import DEAD, STABLE
from headrace.groups.group_table import GroupTable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_groups_response import DescribedGroup, DescribedGroupMember

NOT_FOUND_IS_SAID_FROM = 6


def describe(groups: GroupTable, group_id: str, version: int) -> DescribedGroup:
    group = groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return _describe(group)
    if version < NOT_FOUND_IS_SAID_FROM:
        return DescribedGroup(group_id=group_id, group_state=DEAD.value)
    why = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
    return DescribedGroup(
        group_id=group_id, group_state=DEAD.value, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why
    )


def _describe(group: ClassicGroup) -> DescribedGroup:
    """The protocol and the members' metadata are only told of a stable group: otherwise they may change."""
    stable = group.state is STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )

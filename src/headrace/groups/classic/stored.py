"""A classic group as a record of the log, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.coordinators.decision import CoordinatorRecord
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from headrace.groups.classic.states import EMPTY, STABLE
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey
from headrace.protocol.stored.group_metadata_value import GroupMetadataValue, MemberMetadata

VALUE_VERSION: Final = 3
"""What Kafka writes: with static members, and not yet flexible, so that older brokers can read it."""


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """The generation as it is now. A member that the assignment leaves out gets an empty one."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments.get(member.member_id, NO_ASSIGNMENT),
            )
            for member in group.members.values()
        ],
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def new_group_record(group_id: str, now_ms: int) -> CoordinatorRecord:
    """A group that nobody has been a member of. Written so that its id exists from its first join on."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=now_ms
    )
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value, VALUE_VERSION)


def load_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    group = ClassicGroup(group_id, value.current_state_timestamp)
    group.generation = value.generation
    group.protocol_name = value.protocol
    group.leader = value.leader
    for each in value.members:
        group.add(_load_member(each, value.protocol or ""), value.protocol_type)
    group.stated_protocol_type = value.protocol_type or None
    group.state = STABLE if group.members else EMPTY
    return group


def _load_member(value: MemberMetadata, protocol: str) -> ClassicMember:
    timeout_ms = value.session_timeout if value.rebalance_timeout == -1 else value.rebalance_timeout
    return ClassicMember(
        value.member_id,
        value.group_instance_id,
        value.client_id,
        value.client_host,
        timeout_ms,
        value.session_timeout,
        # The log has only the protocol that was chosen. The member says all of them when it joins again.
        ((protocol, value.subscription),),
        value.assignment,
    )

"""The answers to JoinGroup and SyncGroup, for those who get them at once and for those who were parked."""

from __future__ import annotations

from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.member import ClassicMember
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from headrace.protocol.messages.sync_group_response import SyncGroupResponse


def join_refused(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def joined(group: ClassicGroup, member: ClassicMember, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The member is in this generation. Only its leader is told who else is."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.stated_protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=_everybody(group) if group.leader == member.member_id else [],
    )


def _everybody(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.stated_protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)

"""LeaveGroup to a consumer group: who may be removed by it, and what is answered of each."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.core.errors import FencedInstance, HeadraceError, UnknownMember
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import ConsumerMember
from headrace.groups.consumer.static_members import known_static
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse


def leaving_classic(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """An admin may remove a static member by its instance alone."""
    instance_id = identity.group_instance_id
    if instance_id is None:
        member = group.member(identity.member_id)
    elif identity.member_id:
        member = known_static(group, instance_id, identity.member_id)
    else:
        found = group.static_member(instance_id)
        if found is None:
            raise UnknownMember(f"Instance id {instance_id} is unknown.")
        member = found
    if member.classic is None:
        raise UnknownMember(f"Member {member.member_id} does not use the classic protocol.")
    return member


def leave_response(
    request: LeaveGroupRequest, outcomes: Sequence[ConsumerMember | HeadraceError]
) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=outcome.member_id if isinstance(outcome, ConsumerMember) else identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=_code(outcome),
            )
            for identity, outcome in zip(request.members, outcomes, strict=True)
        ]
    )


def _code(outcome: ConsumerMember | HeadraceError) -> ErrorCode:
    if isinstance(outcome, ConsumerMember):
        return ErrorCode.NONE
    return (
        ErrorCode.FENCED_INSTANCE_ID if isinstance(outcome, FencedInstance) else ErrorCode.UNKNOWN_MEMBER_ID
    )

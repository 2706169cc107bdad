"""LeaveGroup: members go, or an admin takes static members out."""

from __future__ import annotations

from headrace.core.errors import FencedInstance, UnknownMember
from headrace.groups.classic.draft import Draft
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.rebalances import Rebalances
from headrace.groups.classic.sessions import Sessions
from headrace.groups.classic.states import EMPTY
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse


class Leaves:
    __slots__ = ("_rebalances", "_sessions")

    def __init__(self, rebalances: Rebalances, sessions: Sessions) -> None:
        self._rebalances = rebalances
        self._sessions = sessions

    def leave(self, draft: Draft, group: ClassicGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
        codes = [self._leave_one(draft, group, each) for each in request.members]
        if ErrorCode.NONE in codes and group.state is not EMPTY:
            self._rebalances.begin_or_go_on(draft, group)
        return leave_response(request, codes)

    def _leave_one(self, draft: Draft, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id:
            # Static members may be named by their instance alone.
            member_id = group.static_members.get(instance_id, "") if instance_id is not None else ""
        elif self._sessions.forget(group, member_id):
            return ErrorCode.NONE
        try:
            member = group.validate_member(member_id, instance_id)
        except UnknownMember:
            return ErrorCode.UNKNOWN_MEMBER_ID
        except FencedInstance:
            return ErrorCode.FENCED_INSTANCE_ID
        self._rebalances.dismiss(draft, group, member)
        return ErrorCode.NONE


def leave_response(request: LeaveGroupRequest, codes: list[ErrorCode]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code
            )
            for each, code in zip(request.members, codes, strict=True)
        ]
    )

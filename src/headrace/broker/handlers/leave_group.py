"""LeaveGroup: members go at once, without waiting for the end of their sessions.

Versions 0-5. 3: several members, static ones by their instance id (KIP-345). 4: flexible.
5: reason (KIP-800).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.api import Api, Call
from headrace.core.completion import Completion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

SEVERAL_MEMBERS_FROM: Final = 3


def handle(
    context: RequestContext, request: LeaveGroupRequest, call: Call
) -> LeaveGroupResponse | Completion[LeaveGroupResponse]:
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    if call.version < SEVERAL_MEMBERS_FROM:
        request.members = [MemberIdentity(member_id=request.member_id)]
    for each in request.members:
        if each.reason:
            member = each.group_instance_id or each.member_id
            context.runtime.log.debug(
                "member leaves", group=request.group_id, member=member, reason=each.reason
            )
    asked = context.coordinators.groups.ask(
        request.group_id, lambda shard, _, now_ms: shard.leave(request, now_ms)
    )
    return asked.then(
        _as_it_is if call.version >= SEVERAL_MEMBERS_FROM else _of_one_member,
        lambda error: LeaveGroupResponse(error_code=refusal_code(error)),
    )


def _as_it_is(response: LeaveGroupResponse) -> LeaveGroupResponse:
    return response


def _of_one_member(response: LeaveGroupResponse) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=response.members[0].error_code)


API: Final = Api(ApiKey.LEAVE_GROUP, 0, 5, LeaveGroupRequest, handle)

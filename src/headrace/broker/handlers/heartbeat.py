"""Heartbeat: a member of a classic group lives, and hears whether it has to join again.

Versions 0-4. 3: static members (KIP-345). 4: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.api import Api, Call
from headrace.core.completion import Completion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


def handle(
    context: RequestContext,
    request: HeartbeatRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> HeartbeatResponse | Completion[HeartbeatResponse]:
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    asked = context.coordinators.groups.ask(
        request.group_id, lambda shard, _, now_ms: shard.heartbeat(request, now_ms), writes=False
    )
    return asked.then(_as_it_is, _refused)


def _as_it_is(response: HeartbeatResponse) -> HeartbeatResponse:
    return response


def _refused(error: Exception) -> HeartbeatResponse:
    code = refusal_code(error)
    # Nobody's session ends while the group is being read, so the member may believe that all is well.
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.NONE
    return HeartbeatResponse(error_code=code)


API: Final = Api(ApiKey.HEARTBEAT, 0, 4, HeartbeatRequest, handle)

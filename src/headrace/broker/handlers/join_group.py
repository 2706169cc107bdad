"""JoinGroup: become a member of a group, or join its next generation. Parked until that begins.

Versions 0-9. 1: rebalance timeout. 4: a new member gets an id first, and joins with it (KIP-394). 5: static
members (KIP-345). 6: flexible. 7: protocol type in the answer (KIP-559). 8: reason (KIP-800). 9: a leader may
be told to skip the assignment (KIP-814).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.allowed_operations import topics_seen_by
from headrace.broker.requests.api import Api, Call
from headrace.core.completion import Completion
from headrace.groups.classic.answers import join_refused
from headrace.groups.classic.joins import Client
from headrace.groups.sizes import MEMBER_BYTES
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.join_group_request import JoinGroupRequest
from headrace.protocol.messages.join_group_response import JoinGroupResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

NULLABLE_PROTOCOL_FROM: Final = 7
ALWAYS_ADMITTED_BYTES: Final = 16 * 1024


def handle(
    context: RequestContext, request: JoinGroupRequest, call: Call
) -> JoinGroupResponse | Completion[JoinGroupResponse]:
    finish = _finisher(call.version)
    refusal = _refusal(context, request) or _no_room(context, request, call)
    if refusal is not None:
        return finish(join_refused(refusal, request.member_id))
    if request.reason:
        context.runtime.log.debug(
            "member joins", group=request.group_id, member=request.member_id, reason=request.reason
        )
    if call.version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    client = Client(
        call.version, call.client_id or "", f"/{call.connection.peer_host}", topics_seen_by(call.rights)
    )
    asked = context.coordinators.groups.ask(
        request.group_id, lambda shard, completion, now_ms: shard.join(request, client, completion, now_ms)
    )
    return asked.then(finish, lambda error: finish(join_refused(refusal_code(error))))


def _refusal(context: RequestContext, request: JoinGroupRequest) -> ErrorCode | None:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    config = context.runtime.config
    least_ms, most_ms = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not least_ms <= request.session_timeout_ms <= most_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return None


def _no_room(context: RequestContext, request: JoinGroupRequest, call: Call) -> ErrorCode | None:
    """Clients look for the coordinator anew and try again. A member may join again, unless it brings much."""
    size = sum(len(each.name) + len(each.metadata) for each in request.protocols)
    if request.member_id and size <= ALWAYS_ADMITTED_BYTES:
        return None
    size += MEMBER_BYTES + 2 * len(call.client_id or "") + len(request.group_instance_id or "")
    return None if context.coordinators.group_state.admits(size) else ErrorCode.COORDINATOR_NOT_AVAILABLE


def refused_in(version: int, code: ErrorCode) -> JoinGroupResponse:
    return _finisher(version)(join_refused(code))


def _finisher(version: int) -> Callable[[JoinGroupResponse], JoinGroupResponse]:
    return _as_it_is if version >= NULLABLE_PROTOCOL_FROM else _with_protocol_name


def _as_it_is(response: JoinGroupResponse) -> JoinGroupResponse:
    return response


def _with_protocol_name(response: JoinGroupResponse) -> JoinGroupResponse:
    response.protocol_name = response.protocol_name or ""
    return response


API: Final = Api(ApiKey.JOIN_GROUP, 0, 9, JoinGroupRequest, handle)

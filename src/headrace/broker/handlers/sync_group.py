"""SyncGroup: the leader of a generation brings the assignment, and every member gets its part.

A member that asks before is parked until then.

Versions 0-5. 3: static members (KIP-345). 4: flexible. 5: protocol type and name are checked (KIP-559).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.api import Api, Call
from headrace.core.completion import Completion
from headrace.groups.classic.answers import sync_refused
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.protocol.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

CHECKED_PROTOCOL_FROM: Final = 5


def lacks_protocol(request: SyncGroupRequest, version: int) -> bool:
    return version >= CHECKED_PROTOCOL_FROM and (
        request.protocol_type is None or request.protocol_name is None
    )


def handle(
    context: RequestContext, request: SyncGroupRequest, call: Call
) -> SyncGroupResponse | Completion[SyncGroupResponse]:
    if lacks_protocol(request, call.version):
        return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return sync_refused(ErrorCode.INVALID_GROUP_ID)
    asked = context.coordinators.groups.ask(
        request.group_id, lambda shard, completion, now_ms: shard.sync(request, completion, now_ms)
    )
    return asked.then(_as_it_is, lambda error: sync_refused(refusal_code(error)))


def _as_it_is(response: SyncGroupResponse) -> SyncGroupResponse:
    return response


API: Final = Api(ApiKey.SYNC_GROUP, 0, 5, SyncGroupRequest, handle)

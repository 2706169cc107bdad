"""DeleteGroups: forget groups that have no members, and their offsets.

Versions 0-2. 2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.api import Api, Call
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(context: RequestContext, request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:  # noqa: ARG001 - every handler has this shape
    results = [
        DeletableGroupResult(group_id=group_id, error_code=await _delete(context, group_id))
        for group_id in dict.fromkeys(request.groups_names)
    ]
    return DeleteGroupsResponse(results=results)


async def _delete(context: RequestContext, group_id: str) -> ErrorCode:
    try:
        outcomes: dict[str, HeadraceError | None] = await context.coordinators.groups.ask(
            group_id, lambda shard, _, _now_ms: shard.delete_groups([group_id])
        )
    except HeadraceError as error:
        return refusal_code(error)
    outcome = outcomes[group_id]
    return ErrorCode.NONE if outcome is None else refusal_code(outcome)


API: Final = Api(ApiKey.DELETE_GROUPS, 0, 2, DeleteGroupsRequest, handle)

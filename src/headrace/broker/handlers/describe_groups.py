"""DescribeGroups: classic groups with their members and assignments.

Versions 0-6. 3: authorised operations. 4: static members. 5: flexible. 6: GROUP_ID_NOT_FOUND with a text;
before, a group that does not exist was called dead (KIP-1043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.allowed_operations import on_group
from headrace.broker.requests.api import Api, Call
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: DescribeGroupsRequest, call: Call
) -> DescribeGroupsResponse:
    groups = [await _describe(context, group_id, call.version) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == 0:
                group.authorized_operations = on_group(call.rights, group.group_id)
    return DescribeGroupsResponse(groups=groups)


async def _describe(context: RequestContext, group_id: str, version: int) -> DescribedGroup:
    try:
        described: list[DescribedGroup] = await context.coordinators.groups.ask(
            group_id,
            lambda shard, _, _now_ms: shard.describe_groups([group_id], version),
            writes=False,
        )
    except HeadraceError as error:
        return DescribedGroup(group_id=group_id, error_code=refusal_code(error))
    return described[0]


API: Final = Api(ApiKey.DESCRIBE_GROUPS, 0, 6, DescribeGroupsRequest, handle)

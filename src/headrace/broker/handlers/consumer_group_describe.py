"""ConsumerGroupDescribe: groups of the server-side protocol, with what their members have and should have.

Versions 0-1. 1: which protocol each member speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.allowed_operations import on_group
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import text_of
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest, call: Call
) -> ConsumerGroupDescribeResponse:
    groups = [
        DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
        for group_id in request.group_ids
        if not group_id
    ]
    groups += [await _describe(context, group_id) for group_id in request.group_ids if group_id]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == 0:
                group.authorized_operations = on_group(call.rights, group.group_id)
    return ConsumerGroupDescribeResponse(groups=groups)


async def _describe(context: RequestContext, group_id: str) -> DescribedGroup:
    try:
        described: DescribedGroup = await context.coordinators.groups.ask(
            group_id, lambda shard, _, _now_ms: shard.consumer.describe(group_id), writes=False
        )
    except HeadraceError as error:
        return DescribedGroup(group_id=group_id, error_code=refusal_code(error), error_message=text_of(error))
    return described


API: Final = Api(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, ConsumerGroupDescribeRequest, handle)

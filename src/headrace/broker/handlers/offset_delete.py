"""OffsetDelete: forget how far a group has come in topics that it no longer reads.

Version 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.named_partitions import merged, take_unknown
from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.api import Api, Call
from headrace.core.completion import Completion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
)
from headrace.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


def handle(
    context: RequestContext, request: OffsetDeleteRequest, _call: Call
) -> OffsetDeleteResponse | Completion[OffsetDeleteResponse]:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    unknown = take_unknown(context.metadata.image, request, _unknown)
    asked = context.coordinators.groups.ask(
        request.group_id, lambda shard, _, _now_ms: shard.offsets.delete(request)
    )
    return asked.then(
        lambda response: OffsetDeleteResponse(topics=merged(unknown, response.topics)),
        lambda error: OffsetDeleteResponse(error_code=refusal_code(error)),
    )


def _unknown(name: str, partitions: list[OffsetDeleteRequestPartition]) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for each in partitions
        ],
    )


API: Final = Api(ApiKey.OFFSET_DELETE, 0, 0, OffsetDeleteRequest, handle)

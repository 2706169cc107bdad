"""OffsetForLeaderEpoch: where a leader epoch ended, so that a client can tell whether its data was cut off.

Versions 2-4. 3: the replica's id. 4: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
)
from headrace.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


def handle(
    context: RequestContext,
    request: OffsetForLeaderEpochRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(context, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_offset(context: RequestContext, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = context.partitions.get(topic, asked.partition)
        partition.check_epoch(asked.current_leader_epoch)
        epoch, end_offset = partition.end_offset_for_epoch(asked.leader_epoch)
    except HeadraceError as error:
        return EpochEndOffset(partition=asked.partition, error_code=code_of(error))
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)


API: Final = Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, OffsetForLeaderEpochRequest, handle)

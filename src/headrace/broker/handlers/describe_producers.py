"""DescribeProducers: which idempotent producers a partition remembers.

Version 0 (KIP-664).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.core.errors import HeadraceError, NotLeader
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest
from headrace.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


def handle(
    context: RequestContext,
    request: DescribeProducersRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(context, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(context: RequestContext, topic: str, index: int) -> PartitionResponse:
    try:
        partition = context.partitions.get(topic, index)
        if not partition.is_leader:
            raise NotLeader(f"this broker does not lead {partition.topic_partition}")
    except HeadraceError as error:
        return PartitionResponse(
            partition_index=index, error_code=code_of(error), error_message=text_of(error)
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_first_offset,
            )
            for producer in partition.log.active_producers()
        ],
    )


API: Final = Api(ApiKey.DESCRIBE_PRODUCERS, 0, 0, DescribeProducersRequest, handle)

"""DeleteRecords, ListOffsets, OffsetForLeaderEpoch, DescribeProducers: what is in the partitions of topics.

A topic that is denied is answered partition by partition, whether or not it exists.
"""

from __future__ import annotations

from typing import Any, Final

from headrace.broker.authorization.division import Entries, divide, each, without
from headrace.broker.authorization.guard import Verdict
from headrace.broker.authorization.refusals import TEXTS, TOPIC_DENIED
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.messages.delete_records_request import DeleteRecordsTopic
from headrace.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from headrace.protocol.messages.describe_producers_request import TopicRequest
from headrace.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from headrace.protocol.messages.list_offsets_request import ListOffsetsTopic
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderTopic,
)
from headrace.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights


def _name(topic: Any) -> str:
    name: str = topic.name
    return name


def _keeps_records(topic: DeleteRecordsTopic) -> DeleteRecordsTopicResult:
    return DeleteRecordsTopicResult(
        name=topic.name,
        partitions=[
            DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=-1, error_code=TOPIC_DENIED
            )
            for each in topic.partitions
        ],
    )


def _tells_no_offsets(topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
    """A partition may be listed twice, for the handler to see."""
    indexes = dict.fromkeys(each.partition_index for each in topic.partitions)
    return ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsPartitionResponse(partition_index=index, error_code=TOPIC_DENIED) for index in indexes
        ],
    )


def _tells_no_producers(topic: TopicRequest) -> TopicResponse:
    return TopicResponse(
        name=topic.name,
        partitions=[
            PartitionResponse(
                partition_index=index, error_code=TOPIC_DENIED, error_message=TEXTS[TOPIC_DENIED]
            )
            for index in topic.partition_indexes
        ],
    )


def _epoch_name(topic: OffsetForLeaderTopic) -> str:
    return topic.topic


def _tells_no_end(topic: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult:
    return OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=[
            EpochEndOffset(partition=each.partition, error_code=TOPIC_DENIED) for each in topic.partitions
        ],
    )


delete_records: Final = each(
    Operation.DELETE,
    ResourceType.TOPIC,
    Entries("topics", _name, DeleteRecordsResponse, "topics", _keeps_records),
)
list_offsets: Final = each(
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    Entries("topics", _name, ListOffsetsResponse, "topics", _tells_no_offsets),
)
describe_producers: Final = each(
    Operation.READ,
    ResourceType.TOPIC,
    Entries("topics", _name, DescribeProducersResponse, "topics", _tells_no_producers, _name),
)
_EPOCHS: Final = Entries("topics", _epoch_name, OffsetForLeaderEpochResponse, "topics", _tells_no_end)


def offset_for_leader_epoch(
    context: RequestContext, rights: Rights, request: OffsetForLeaderEpochRequest, _call: Call
) -> Verdict:
    """Asked by consumers, and by followers of any topic."""
    return divide(
        context,
        request.topics,
        lambda topic: rights.allows_any(
            (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME),
            (Operation.DESCRIBE, ResourceType.TOPIC, topic.topic),
        ),
        lambda allowed, denied: without(request, _EPOCHS, allowed, denied),
    )

"""DescribeTopicPartitions: topics in pages, with eligible leader replicas.

Version 0 (KIP-966). The answer holds at most `max.request.partition.size.limit` partitions; a cursor says
where the next page begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.allowed_operations import may_see_topic, on_topic
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.offline_replicas import offline_replicas
from headrace.controller.topic_names import INTERNAL_TOPICS, is_topic_name
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headrace.protocol.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext
    from headrace.controller.topic_image import TopicImage

SORTED_AT_ONCE: Final = 1_000
TOPICS_TOGETHER: Final = 20


async def handle(
    context: RequestContext, request: DescribeTopicPartitionsRequest, call: Call
) -> DescribeTopicPartitionsResponse:
    """Topics that are asked for and do not exist are answered all at once, however many they are, and take no
    place on a page. Each is looked up in its turn; what is deleted before it is simply not there. Who asks
    for all of them hears only of those that it may describe."""
    asked = request.topics
    if len(asked) > SORTED_AT_ONCE:
        names = await context.runtime.work_thread.run(_names_of, asked)
    else:
        names = _names_of(asked) or context.metadata.image.topic_names()
    first = 0
    if request.cursor is not None:
        cursor = request.cursor
        if cursor.partition_index < 0:
            return DescribeTopicPartitionsResponse(
                topics=[
                    DescribeTopicPartitionsResponseTopic(name=name, error_code=ErrorCode.INVALID_REQUEST)
                    for name in (names if asked else ())
                ]
            )
        names = [name for name in names if name >= cursor.topic_name]
        if names and names[0] == cursor.topic_name:
            first = cursor.partition_index
    room = max(
        1, min(request.response_partition_limit, context.runtime.config.max_request_partition_size_limit)
    )
    response = DescribeTopicPartitionsResponse()
    turns = context.runtime.turns
    for number, name in enumerate(names):
        if number % TOPICS_TOGETHER == TOPICS_TOGETHER - 1 and turns.is_over:
            await turns.next()
        topic = context.metadata.image.topic(name)
        if topic is None:
            if asked:
                response.topics.append(_unknown(name, on_topic(call.rights, name)))
            first = 0
            continue
        if not asked and not may_see_topic(call.rights, name):
            first = 0
            continue
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        first = min(first, len(topic))
        end = min(len(topic), first + room)
        described = _describe(context, topic, first, end)
        described.topic_authorized_operations = on_topic(call.rights, name)
        response.topics.append(described)
        room -= end - first
        if end < len(topic):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        first = 0
    return response


def _names_of(topics: Sequence[TopicRequest]) -> list[str]:
    return sorted({topic.name for topic in topics})


def _unknown(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    legal = is_topic_name(name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, topic_authorized_operations=operations
    )


def _describe(
    context: RequestContext, topic: TopicImage, first: int, end: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(context, topic, index) for index in range(first, end)],
    )


def _partition(
    context: RequestContext, topic: TopicImage, index: int
) -> DescribeTopicPartitionsResponsePartition:
    leader = topic.leaders[index]
    replicas = topic.replicas(index)
    exceptional = topic.exceptional(index)
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=topic.leader_epochs[index],
        replica_nodes=list(replicas),
        isr_nodes=list(topic.isr(index)),
        eligible_leader_replicas=list(exceptional.elr),
        last_known_elr=list(exceptional.last_known_elr),
        offline_replicas=offline_replicas(
            context.runtime, context.metadata, context.partitions, topic, index, replicas
        ),
    )


API: Final = Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, DescribeTopicPartitionsRequest, handle)

"""AlterReplicaLogDirs: in which log directory of this broker a replica shall be (KIP-113).

Versions 1-2. 2: flexible. A replica that is not here yet is put into that directory when it comes, and
until then the answer is REPLICA_NOT_AVAILABLE, on which kafka-reassign-partitions asks again, or, of a topic
that does not exist yet, UNKNOWN_TOPIC_OR_PARTITION. A replica that is in another directory is moved, in the
background, and the answer does not wait for that: DescribeLogDirs tells how far it is. One that is in that
directory already stays there, and a move of it that is under way ends.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.controller.topic_names import is_topic_name
from headrace.core.ids import TopicPartition
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from headrace.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

LONGEST_FOLDER: Final = 255
FUTURE_SUFFIX: Final = len(".") + 32 + len("-future")
"""What Kafka adds to the name of a folder while it is filled."""


async def handle(
    context: RequestContext,
    request: AlterReplicaLogDirsRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> AlterReplicaLogDirsResponse:
    wanted = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for name, path in wanted.items():
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        code = _outcome(context, name, path)
        results[name.topic].append(
            AlterReplicaLogDirPartitionResult(partition_index=name.partition, error_code=code)
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=rows)
            for topic, rows in results.items()
        ]
    )


def _outcome(context: RequestContext, name: TopicPartition, path: str) -> ErrorCode:
    """In the order in which Kafka looks."""
    if len(str(name)) + FUTURE_SUFFIX > LONGEST_FOLDER:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    logs = context.storage.logs
    directory = next((each for each in logs.directories if each.path == path), None)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not directory.is_online or context.partitions.is_offline(*name):
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = context.partitions.find(*name)
    if partition is None:
        if name.partition >= 0 and is_topic_name(name.topic):
            logs.prefer(name, directory)
        is_elsewhere = context.metadata.exists(*name)
        return ErrorCode.REPLICA_NOT_AVAILABLE if is_elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    context.storage.moves.move(partition, directory)
    return ErrorCode.NONE


API: Final = Api(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, AlterReplicaLogDirsRequest, handle)

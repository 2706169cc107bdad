"""DescribeLogDirs: what lies in each log directory, and how much room it has.

Versions 1-5. 2: flexible. 3: a top-level error. 4: total and usable bytes. 5: whether a directory is
cordoned (KIP-1066), which none can be here. A directory that failed answers KAFKA_STORAGE_ERROR. The lag is
counted to the high watermark that the leader told last. Apache Kafka counts it to the follower's own, which
is never ahead of its log, so that there it is always 0. A replica that moves to another directory is there
with `is_future_key`, its lag counted to the end of the log that it is copied from.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.log.free_space import Space
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from headrace.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

UNKNOWN: Final = Space(-1, -1)


async def handle(
    context: RequestContext,
    request: DescribeLogDirsRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> DescribeLogDirsResponse:
    turns = context.runtime.turns
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    by_directory: dict[str, dict[str, list[DescribeLogDirsPartition]]] = {
        directory.path: defaultdict(list) for directory in context.storage.logs.directories
    }
    for log in list(context.storage.logs.logs.values()):
        if turns.is_over:
            await turns.next()
        if log.closed:
            continue  # deleted meanwhile
        name, index = log.topic_partition
        if wanted is None or (name, index) in wanted:
            partition = context.partitions.find(name, index)
            by_directory[log.directory.path][name].append(
                DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=log.size_bytes,
                    offset_lag=0 if partition is None else partition.lag,
                )
            )
    for future in context.storage.moves.futures():
        name, index = future.partition
        if wanted is None or (name, index) in wanted:
            by_directory[future.directory.path][name].append(
                DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=future.size,
                    offset_lag=future.lag,
                    is_future_key=True,
                )
            )
    results = []
    for directory in context.storage.logs.directories:
        if not directory.is_online:
            results.append(
                DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path)
            )
            continue
        space = context.storage.disk_space.spaces.get(directory.path, UNKNOWN)
        results.append(
            DescribeLogDirsResult(
                log_dir=directory.path,
                topics=[
                    DescribeLogDirsTopic(name=name, partitions=partitions)
                    for name, partitions in by_directory[directory.path].items()
                ],
                total_bytes=space.total,
                usable_bytes=space.free,
            )
        )
    return DescribeLogDirsResponse(results=results)


API: Final = Api(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, DescribeLogDirsRequest, handle)

"""DeleteRecords: raise the log start of partitions; whole segments below it are removed.

Versions 0-2. 2: flexible. Offset -1 means up to the high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.api import Api, Call
from headrace.broker.errors import code_of
from headrace.core.errors import HeadraceError, NotLeader, PolicyViolation
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsRequest
from headrace.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


async def handle(broker: Broker, request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:  # noqa: ARG001 - every handler has this shape
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_delete(broker, topic.name, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )
    # What was answered must hold after a crash: the new log starts go to disk first.
    await broker.maintenance.checkpoint()
    return response


def _delete(broker: Broker, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        partition = broker.partitions.get(topic, asked.partition_index)
        if not partition.is_leader:
            raise NotLeader(f"this broker does not lead {partition.topic_partition}")
        if "delete" not in partition.log.config.cleanup_policy:
            raise PolicyViolation("records of a topic that is only compacted cannot be deleted by offset")
        low_watermark = partition.delete_records_before(asked.offset)
    except HeadraceError as error:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=-1, error_code=code_of(error)
        )
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=low_watermark)


API: Final = Api(ApiKey.DELETE_RECORDS, 0, 2, DeleteRecordsRequest, handle)

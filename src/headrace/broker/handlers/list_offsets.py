"""ListOffsets: the offset at a time, or at one of the ends.

Versions 1-9. 2: isolation level. 4: leader epochs. 7: -3, the largest timestamp. 8: -4, the earliest on
local disk. 9: -5, the latest in remote storage (there is none: offset -1). Not done: 10 and 11.

Only a leader answers, but to tools that compare replicas (replica -2): to those any replica tells how far
its log reaches, committed or not. A new leader that does not yet know all that is committed cannot say where
the end is, nor that no record is so young: OFFSET_NOT_AVAILABLE, or before version 5, which has no such
error, LEADER_NOT_AVAILABLE (KIP-207).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.api import Api, Call
from headrace.broker.errors import code_of
from headrace.core.errors import HeadraceError, LeaderNotAvailable, OffsetNotAvailable, UnsupportedVersion
from headrace.log.lookup import TimestampOffset
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.replication.partition import Partition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
FIRST_VERSION: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
FIRST_WITH_LEADER_EPOCH: Final = 4
FIRST_WITH_OFFSET_NOT_AVAILABLE: Final = 5
READ_COMMITTED: Final = 1
DEBUGGING_CONSUMER: Final = -2
NO_TIMESTAMP: Final = -1


def handle(broker: Broker, request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    topics = []
    for topic in request.topics:
        seen: set[int] = set()
        partitions = []
        for asked in topic.partitions:
            if asked.partition_index in seen:
                partitions.append(_refused(asked, ErrorCode.INVALID_REQUEST))
                continue
            seen.add(asked.partition_index)
            try:
                partitions.append(_look_up(broker, topic.name, asked, request, call.version))
            except HeadraceError as error:
                partitions.append(_refused(asked, code_of(error)))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


def _refused(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _look_up(
    broker: Broker, topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest, version: int
) -> ListOffsetsPartitionResponse:
    partition = broker.partitions.get(topic, asked.partition_index)
    for_tool = request.replica_id == DEBUGGING_CONSUMER
    if for_tool:
        partition.check_read(asked.current_leader_epoch)
    else:
        partition.check_epoch(asked.current_leader_epoch)
    if version < FIRST_VERSION.get(asked.timestamp, 0):
        raise UnsupportedVersion(f"timestamp {asked.timestamp} needs a newer version of ListOffsets")
    limit = partition.readable_limit(request.isolation_level == READ_COMMITTED)
    found = _find(partition, asked.timestamp, partition.log.end_offset if for_tool else limit)
    if not (for_tool or partition.knows_the_end) and (
        asked.timestamp == LATEST or (asked.timestamp >= 0 and found is None)
    ):
        if version < FIRST_WITH_OFFSET_NOT_AVAILABLE:
            raise LeaderNotAvailable("a new leader does not know yet what is committed")
        raise OffsetNotAvailable("a new leader does not know yet what is committed")
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if found is not None:
        answer.offset, answer.timestamp = found.offset, found.timestamp
        if version >= FIRST_WITH_LEADER_EPOCH:
            answer.leader_epoch = found.leader_epoch
    return answer


def _find(partition: Partition, timestamp: int, limit: int) -> TimestampOffset | None:
    """`limit` is where the log ends for whoever asks."""
    log = partition.log
    if timestamp >= 0:
        return log.offset_for_timestamp(timestamp, limit)
    if timestamp == LATEST:
        return TimestampOffset(limit, NO_TIMESTAMP, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return TimestampOffset(start, NO_TIMESTAMP, log.epochs.epoch_of(start))
    if timestamp == MAX_TIMESTAMP:
        # Of the whole log, as with Kafka: a record that may not be seen yet is not replaced by another.
        found = log.max_timestamp_offset(log.end_offset)
        return found if found is not None and found.offset < limit else None
    if timestamp == LATEST_TIERED:
        return None
    raise UnsupportedVersion(f"timestamp {timestamp} has no meaning")


API: Final = Api(ApiKey.LIST_OFFSETS, 1, 9, ListOffsetsRequest, handle)

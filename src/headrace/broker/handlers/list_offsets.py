"""ListOffsets: the offset at a time, or at one of the ends.

Versions 1-11. 2: isolation level. 4: leader epochs. 7: -3, the largest timestamp. 8: -4, the earliest on
local disk. 9: -5, the latest in remote storage (KIP-1005). 10: how long to wait for remote storage
(KIP-1075). 11: -6, the earliest that is still to be copied there (KIP-1023). Of a topic without remote
storage, -5 and -6 are at offset -1, as in Kafka. With it, a time is looked up in the store first, by threads.

Only a leader answers, but to those who compare replicas (replica -2): to them any replica tells how far its
log reaches, committed or not, and the epoch of its last record, whether or not there is a leader. Of one that
is quarantined they hear that beside the error: whoever elects must know what a restart may bring back. A new
leader that does not yet know all that is committed cannot say where the end is, nor that no record is so
young: OFFSET_NOT_AVAILABLE, or before version 5, which has no such error, LEADER_NOT_AVAILABLE (KIP-207).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.core.errors import (
    HeadraceError,
    HistoryUnavailable,
    LeaderNotAvailable,
    OffsetNotAvailable,
    UnsupportedVersion,
)
from headrace.core.ids import TopicPartition
from headrace.log.lookup import Answers, BatchQuestion, TimestampOffset, Unopened
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.offset_timestamps import (
    DEBUGGING_CONSUMER,
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    FIRST_WITH_LEADER_EPOCH,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext
    from headrace.replication.history import History
    from headrace.replication.partition import Partition

FIRST_VERSION: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
FIRST_WITH_OFFSET_NOT_AVAILABLE: Final = 5
READ_COMMITTED: Final = 1
NO_TIMESTAMP: Final = -1
NOT_KNOWN: Final = -1


def handle(
    context: RequestContext, request: ListOffsetsRequest, call: Call
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    if any(_is_looked_up(asked) for topic in request.topics for asked in topic.partitions):
        return _look_up_all(context, request, call.version)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(context, topic.name, asked, request, call.version, None, is_doubled)
                    for asked, is_doubled in _once_each(topic)
                ],
            )
            for topic in request.topics
        ]
    )


def _is_looked_up(asked: ListOffsetsPartition) -> bool:
    """By time, in the batches themselves."""
    return asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP


async def _look_up_all(
    context: RequestContext, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    """Batches that are dear to open are opened in a thread, and the look-up is made again: the log may be
    another by then."""
    response = ListOffsetsResponse()
    for topic in request.topics:
        answered = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(answered)
        for asked, is_doubled in _once_each(topic):
            opened: Answers = {}
            row: ListOffsetsPartitionResponse | None = None
            while row is None:
                if context.runtime.turns.is_over:
                    await context.runtime.turns.next()
                try:
                    found = await _in_history(context, topic.name, asked, request)
                    row = _answer(context, topic.name, asked, request, version, opened, is_doubled, found)
                except HistoryUnavailable as error:
                    row = _refused(asked, code_of(error))
                except Unopened as unopened:
                    question = unopened.question
                    opened[question.key] = await _opened(context, question)
            answered.partitions.append(row)
    return response


async def _in_history(
    context: RequestContext, topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest
) -> TimestampOffset | None:
    """What is asked for, as far as it lies in the object store and no more on this disk."""
    partition = context.partitions.find(topic, asked.partition_index)
    if partition is None or partition.history is None or not _is_looked_up(asked):
        return None
    tiering = context.tiering
    assert tiering is not None, "without a store no partition has a history"
    if not partition.is_leader and request.replica_id != DEBUGGING_CONSUMER:
        return None
    history = tiering.history_of(partition)
    while True:
        begin = partition.log.log_start_offset
        if asked.timestamp == MAX_TIMESTAMP:
            found = await tiering.reads.newest(history)
        else:
            found = await tiering.reads.first_at(history, asked.timestamp)
        if partition.log.log_start_offset == begin or partition.history is not history:
            return found  # else segments went from the disk meanwhile, which nobody has looked into


async def _opened(context: RequestContext, question: BatchQuestion) -> TimestampOffset | None:
    try:
        return await context.runtime.work_thread.run(question.answer)
    except OSError:
        return question.claimed  # whoever reads the file next on its own account deals with the disk


def _once_each(topic: ListOffsetsTopic) -> Iterable[tuple[ListOffsetsPartition, bool]]:
    """The partitions that a topic lists, and whether it lists them twice."""
    mentions = Counter(asked.partition_index for asked in topic.partitions)
    last = {asked.partition_index: asked for asked in topic.partitions}
    return [(asked, mentions[index] > 1) for index, asked in last.items()]


def _answer(
    context: RequestContext,
    topic: str,
    asked: ListOffsetsPartition,
    request: ListOffsetsRequest,
    version: int,
    opened: Answers | None,
    is_doubled: bool,
    in_history: TimestampOffset | None = None,
) -> ListOffsetsPartitionResponse:
    if is_doubled:
        return _refused(asked, ErrorCode.INVALID_REQUEST)
    try:
        return _look_up(context, topic, asked, request, version, opened, in_history)
    except HeadraceError as error:
        refused = _refused(asked, code_of(error))
        if request.replica_id == DEBUGGING_CONSUMER and asked.timestamp == LATEST:
            ends = context.storage.logs.quarantined_ends
            name = TopicPartition(topic, asked.partition_index)
            refused.leader_epoch, refused.offset = ends.get(name, (NOT_KNOWN, NOT_KNOWN))
        return refused


def _refused(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _look_up(
    context: RequestContext,
    topic: str,
    asked: ListOffsetsPartition,
    request: ListOffsetsRequest,
    version: int,
    opened: Answers | None,
    in_history: TimestampOffset | None,
) -> ListOffsetsPartitionResponse:
    partition = context.partitions.get(topic, asked.partition_index)
    for_tool = request.replica_id == DEBUGGING_CONSUMER
    if for_tool:
        partition.check_any(asked.current_leader_epoch)
    else:
        partition.check_epoch(asked.current_leader_epoch)
    if version < FIRST_VERSION.get(asked.timestamp, 0):
        raise UnsupportedVersion(f"timestamp {asked.timestamp} needs a newer version of ListOffsets")
    limit = partition.readable_limit(request.isolation_level == READ_COMMITTED)
    end = partition.log.end_offset if for_tool else limit
    if in_history is not None and asked.timestamp >= 0:
        found: TimestampOffset | None = in_history  # all that lies here is later
    else:
        found = _find(partition, asked.timestamp, end, opened)
        if in_history is not None and (found is None or in_history.timestamp >= found.timestamp):
            found = in_history
    if for_tool and asked.timestamp == LATEST:
        found = TimestampOffset(partition.log.end_offset, NO_TIMESTAMP, partition.log.latest_epoch)
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


def _find(partition: Partition, timestamp: int, limit: int, opened: Answers | None) -> TimestampOffset | None:
    """`limit` is where the log ends for whoever asks. Raises Unopened if a batch must be opened first."""
    log = partition.log
    if timestamp >= 0:
        return log.offset_for_timestamp(timestamp, limit, opened)
    if timestamp == LATEST:
        return TimestampOffset(limit, NO_TIMESTAMP, partition.leader_epoch)
    if timestamp == EARLIEST and partition.history is not None:
        return _tiered_start(partition.history)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return TimestampOffset(start, NO_TIMESTAMP, log.epochs.epoch_of(start))
    if timestamp == MAX_TIMESTAMP:
        # Of the whole log, as with Kafka: a record that may not be seen yet is not replaced by another.
        found = log.max_timestamp_offset(log.end_offset, opened)
        return found if found is not None and found.offset < limit else None
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None if partition.history is None else _tiered_end(partition, timestamp)
    raise UnsupportedVersion(f"timestamp {timestamp} has no meaning")


def _tiered_start(history: History) -> TimestampOffset:
    start = history.log_start_offset
    if start is None:
        raise HistoryUnavailable("the manifest in the object store was not read yet")
    return TimestampOffset(start, NO_TIMESTAMP, history.epoch_of(start))


def _tiered_end(partition: Partition, timestamp: int) -> TimestampOffset | None:
    """-5: the last offset in the store. -6: the first one that is not there.

    What lies before the start is deleted, whether or not the manifest still names it: that takes some time.
    """
    history = partition.history
    assert history is not None
    end = history.tiered_end
    if timestamp == LATEST_TIERED:
        is_there = end > (history.log_start_offset or 0)
        return TimestampOffset(end - 1, NO_TIMESTAMP, history.epoch_of(end - 1)) if is_there else None
    pending = max(end, partition.log.log_start_offset)
    return TimestampOffset(pending, NO_TIMESTAMP, history.epoch_of(pending))


API: Final = Api(ApiKey.LIST_OFFSETS, 1, 11, ListOffsetsRequest, handle)

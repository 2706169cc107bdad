"""One batch of a produce request: checked, appended, acknowledged or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.broker.coordinators.internal_topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from headrace.broker.produce.early_batches import refuse_early
from headrace.broker.requests.errors import code_of, text_of
from headrace.broker.requests.leader_endpoints import endpoints_of
from headrace.core.errors import (
    CorruptBatch,
    DiskFull,
    HeadraceError,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    NotLeader,
    TopicNotAuthorized,
    TransactionalIdNotAuthorized,
    UnknownTopicId,
    UnsupportedCompression,
)
from headrace.core.ids import TopicPartition
from headrace.network.connection import Connection
from headrace.protocol.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MIN_BATCH_LENGTH,
    TRANSACTIONAL_FLAG,
    check,
    read_header,
)
from headrace.protocol.compression import Compression
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import read_request_header
from headrace.protocol.produce_codec import (
    FIRST_WITH_LEADER,
    PartitionResult,
    ProduceRequestView,
    Topic,
    encode_produce_response,
)
from headrace.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext
    from headrace.log.partition_log import AppendResult
    from headrace.replication.partition import Partition
    from headrace.security.rights import Rights

FIRST_WITH_ZSTD: Final = 7
ACKS_ALL: Final = -1
ACKS: Final = (ACKS_ALL, 0, 1)
INTERNAL_TOPICS: Final = frozenset((GROUPS_TOPIC, TRANSACTIONS_TOPIC))
ADMIN_CLIENT: Final = "__admin_client"
"""Whoever calls himself this may write to internal topics, as with Apache Kafka."""
NO_TRANSACTIONAL_ID: Final = "a transactional batch in a request without a transactional id"

Results = list[tuple[Topic, list[PartitionResult]]]


def known_name(context: RequestContext, topic: Topic) -> str:
    """Empty for an id that no topic has."""
    if isinstance(topic, str):
        return topic
    image = context.metadata.image.topic_by_id(topic)
    return "" if image is None else image.name


def acknowledged(index: int, result: AppendResult) -> PartitionResult:
    return PartitionResult(index, 0, result.base_offset, result.append_time_ms, result.log_start_offset)


def refusal(
    context: RequestContext, topic: str, index: int, version: int, error: HeadraceError
) -> PartitionResult:
    code = code_of(error)
    count_failure(context, topic, version, code)
    if isinstance(error, DiskFull):
        context.runtime.metrics.refused_by_full_disks += 1
    current_leader = None
    if isinstance(error, NotLeader) and version >= FIRST_WITH_LEADER:
        image = context.metadata.image.topic(topic)
        if image is not None and index in image:
            current_leader = (image.leader(index), image.leader_epoch(index))
    return PartitionResult(index, code, error_message=text_of(error), current_leader=current_leader)


def encode(
    context: RequestContext, version: int, correlation_id: int, results: Results, connection: Connection
) -> bytes:
    """With the addresses of leaders that it names (KIP-951): the producer need not ask for metadata."""
    leaders = [each.current_leader[0] for _, answers in results for each in answers if each.current_leader]
    endpoints = endpoints_of(context.metadata, leaders, connection.listener) if leaders else ()
    return encode_produce_response(version, correlation_id, results, node_endpoints=endpoints)


def count_failure(context: RequestContext, topic: str, version: int, code: ErrorCode) -> None:
    metrics = context.runtime.metrics.known_topic(topic)
    metrics.produce_requests += 1
    metrics.failed_produce_requests += 1
    context.runtime.metrics.request("Produce", version).error(code.name)


def check_internal(context: RequestContext, topic: str, index: int, frame: memoryview) -> None:
    """Clients may not write what coordinators keep their state in."""
    image = context.metadata.image.topic(topic)
    if image is not None and index in image and read_request_header(frame)[0].client_id != ADMIN_CLIENT:
        raise InvalidTopic(f"{topic} is written by brokers only")


def may_write_transactionally(rights: Rights, request: ProduceRequestView, frame: memoryview) -> bool:
    """What counts is what the batches say: a request can name any transactional id, or none."""
    name = request.transactional_id
    return not any(
        _is_transactional(frame[start:end])
        for _, partitions in request.topics
        for _, start, end in partitions
    ) or (name is not None and rights.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name))


def _is_transactional(records: memoryview) -> bool:
    """As far as its header says. Nothing else of the batch has been looked at."""
    return len(records) >= HEADER_SIZE and bool(read_header(records)[5] & TRANSACTIONAL_FLAG)


class Refused(NamedTuple):
    error: HeadraceError
    answer: PartitionResult


def produce(
    context: RequestContext,
    topic: Topic,
    index: int,
    frame: memoryview,
    records: memoryview,
    version: int,
    acks: int,
    now_ms: int,
    rights: Rights | None,
    *,
    in_transaction: bool,
) -> tuple[Partition, AppendResult] | Refused:
    """One batch to one partition: the same for a request with one, and for each of many."""
    name = known_name(context, topic)
    try:
        if not name and not isinstance(topic, str):
            raise UnknownTopicId(f"no topic has the id {topic}")
        if rights is not None and not rights.allows(Operation.WRITE, ResourceType.TOPIC, name):
            raise TopicNotAuthorized(f"WRITE is not allowed on the topic {topic}")
        if name in INTERNAL_TOPICS:
            check_internal(context, name, index, frame)
        return _append(context, name, index, records, version, acks, now_ms, in_transaction=in_transaction)
    except HeadraceError as error:
        told = error
        if not in_transaction and _is_transactional(records):
            # Whatever else is wrong, with the topic or with its rights.
            told = TransactionalIdNotAuthorized(NO_TRANSACTIONAL_ID)
        answer = refusal(context, name, index, version, told)
        if acks != 0:
            where = TopicPartition(name, index)
            context.produces.refused.note(where, records, told, context.runtime.monotonic_ms())
        return Refused(told, answer)


def must_wait(partition: Partition, result: AppendResult, acks: int) -> bool:
    """Whether a batch is acknowledged later: by its followers, or by the disk."""
    return (acks == ACKS_ALL and partition.high_watermark <= result[1]) or partition.must_sync_before_ack


def _append(
    context: RequestContext,
    topic: str,
    index: int,
    records: memoryview,
    version: int,
    acks: int,
    now_ms: int,
    *,
    in_transaction: bool,
) -> tuple[Partition, AppendResult]:
    partition = context.partitions.get(topic, index)
    if acks not in ACKS:
        raise InvalidRequiredAcks(f"acks={acks}: only -1, 0 and 1 mean something")
    try:
        header = check(records)
    except CorruptBatch as error:
        raise _to_kafka_error(records, error) from None
    size = header[1] + LOG_OVERHEAD
    attributes = header[5]
    if size != len(records):
        raise InvalidRecord("a produce request holds exactly one batch for each partition")
    if header[0] != 0:
        raise InvalidRecord(f"a producer's batch begins at offset 0, not {header[0]}")
    if attributes & TRANSACTIONAL_FLAG and not in_transaction:
        raise TransactionalIdNotAuthorized(NO_TRANSACTIONAL_ID)
    if version < FIRST_WITH_ZSTD and attributes & 7 == Compression.ZSTD:
        raise UnsupportedCompression("zstd needs Produce 7 or later")
    if partition.log.directory.is_full:
        raise DiskFull(f"the log directory of {topic}-{index} is full")
    if context.produces.refused:
        context.produces.refused.check(partition, header, context.runtime.monotonic_ms())
    term = partition.term
    if term is not None and term.is_new:
        refuse_early(partition, term, header, context.runtime.clock.monotonic())
    result = partition.append(records, header, acks=acks, now_ms=now_ms)
    metrics = partition.metrics
    metrics.produce_requests += 1
    metrics.messages_in += header[12]
    metrics.bytes_in += size
    return partition, result


def _to_kafka_error(records: memoryview, error: CorruptBatch) -> HeadraceError:
    """A batch that is not there whole, or is of an old format, is INVALID_RECORD; damage is CORRUPT_MESSAGE.

    Producers try again after the second and not after the first, which is why the codes must be Kafka's.
    """
    if len(records) < HEADER_SIZE:
        return InvalidRecord(str(error))
    header = read_header(records)
    if header.size > len(records) or header.magic < MAGIC:
        return InvalidRecord(str(error))
    if header.batch_length >= MIN_BATCH_LENGTH and header.magic == MAGIC and header.record_count < 0:
        return InvalidRecord(str(error))
    return error

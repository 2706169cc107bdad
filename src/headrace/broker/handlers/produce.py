"""Produce: the hot path in. Served from the raw frame; no record is decoded.

Versions 3-13 are served; 0-2 are advertised because librdkafka before 2.12 looks for them before it
compresses, and refused as Apache Kafka refuses them. 7: zstd. 8: error details. 9: flexible. 11: the
transactional client's newer errors. 12: the partition is put into the transaction by this very request
(KIP-890). 13: topics by id.

The first batch of a transaction in a partition waits until the coordinator knows of it
(broker/transactions/unverified_produce.py); meanwhile its connection serves nothing else.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.api import Api
from headrace.broker.coordinators.internal_topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from headrace.broker.errors import code_of, text_of
from headrace.broker.held_produce import HeldProduce
from headrace.broker.leader_endpoints import endpoints_of
from headrace.broker.promise import Promise
from headrace.broker.requests.partition_limit import most_elements
from headrace.broker.transactions.unverified_produce import Refusals, verify_partitions
from headrace.core.errors import (
    CorruptBatch,
    DiskFull,
    HeadraceError,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    NotLeader,
    TransactionalIdNotAuthorized,
    UnknownTopicId,
    UnsupportedCompression,
    UnsupportedVersion,
)
from headrace.core.ids import TopicPartition
from headrace.network.answer import NO_ANSWER, Answer, NoAnswer, Pending
from headrace.network.connection import Connection
from headrace.protocol.api_keys import ApiKey
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
from headrace.protocol.messages.produce_request import ProduceRequest
from headrace.protocol.produce_codec import (
    FIRST_WITH_LEADER,
    PartitionResult,
    ProduceRequestView,
    Topic,
    encode_acknowledgement,
    encode_produce_response,
    names_partition_twice,
    once_each,
    parse_any,
    parse_one,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.log.partition_log import AppendResult
    from headrace.replication.partition import Partition

FIRST_SERVED: Final = 3
FIRST_WITH_ZSTD: Final = 7
ACKS_ALL: Final = -1
ACKS: Final = (ACKS_ALL, 0, 1)

INTERNAL_TOPICS: Final = frozenset((GROUPS_TOPIC, TRANSACTIONS_TOPIC))
ADMIN_CLIENT: Final = "__admin_client"
"""Whoever calls himself this may write to internal topics, as with Apache Kafka."""
NO_REFUSALS: Final[Refusals] = {}

Results = list[tuple[Topic, list[PartitionResult]]]


def serve(
    broker: Broker, version: int, correlation_id: int, frame: memoryview, at: int, connection: Connection
) -> Answer:
    if version < FIRST_SERVED:
        raise UnsupportedVersion(f"Produce {version} is too old: the least is {FIRST_SERVED}")
    one = parse_one(frame, at, version, len(frame))
    if one is None:
        return _serve_many(broker, version, correlation_id, frame, at, connection)
    acks, timeout_ms, topic, index, start, end = one
    name = ""
    try:
        name = topic if isinstance(topic, str) else _name_of(broker, topic)
        if name in INTERNAL_TOPICS:
            _check_internal(broker, name, index, frame)
        partition, result = _append(
            broker,
            name,
            index,
            frame[start:end],
            version,
            acks,
            broker.clock.wall_ms(),
            in_transaction=False,
        )
    except HeadraceError as error:
        answer = _refusal(broker, name, index, version, error)
        if acks == 0:
            raise
        broker.refused_batches.note(
            TopicPartition(name, index), frame[start:end], error, broker.monotonic_ms()
        )
        return [_encode(broker, version, correlation_id, [(topic, [answer])], connection)]
    if (acks == ACKS_ALL and partition.high_watermark <= result[1]) or partition.must_sync_before_ack:
        answers = [_acknowledged(index, result)]
        held = HeldProduce(broker, version, correlation_id, [(topic, answers)])
        held.hold(partition, result, answers, 0, acks)
        return NO_ANSWER if acks == 0 else held.begin(timeout_ms)
    if acks == 0:
        return NO_ANSWER
    return [encode_acknowledgement(version, correlation_id, topic, index, result[0], result[2], result[3])]


def _serve_many(
    broker: Broker, version: int, correlation_id: int, frame: memoryview, at: int, connection: Connection
) -> Answer:
    request = parse_any(frame, at, version, len(frame), most_elements(broker, len(frame)))
    if names_partition_twice(request):
        error = InvalidRecord("a produce request holds exactly one batch for each partition")
        return _refuse_all(broker, version, correlation_id, once_each(request), connection, error)
    if request.transactional_id is None:
        return _carry_out(broker, version, correlation_id, frame, request, connection, NO_REFUSALS)
    try:
        verified = verify_partitions(broker, request, frame, version)
    except HeadraceError as error:
        return _refuse_all(broker, version, correlation_id, request, connection, error)
    if verified is None:
        return _carry_out(broker, version, correlation_id, frame, request, connection, NO_REFUSALS)
    if verified.is_decided:
        return _carry_out(broker, version, correlation_id, frame, request, connection, verified.result())
    kept = memoryview(bytearray(frame))  # the next read overwrites the frame
    pending = Pending(exclusive=True)
    verified.listen(partial(_go_on, broker, version, correlation_id, kept, request, connection, pending))
    return pending


def _go_on(
    broker: Broker,
    version: int,
    correlation_id: int,
    frame: memoryview,
    request: ProduceRequestView,
    connection: Connection,
    pending: Pending,
    verified: Promise[Refusals],
) -> None:
    """The coordinator has answered."""
    try:
        answer = _carry_out(broker, version, correlation_id, frame, request, connection, verified.result())
    except Exception as error:  # nobody else would hear of it: the request is not on the stack any more
        broker.peer_log.warning("connection closed", connection.peer_host, error=repr(error))
        connection.close()
        return
    if isinstance(answer, Pending):
        if answer.parts is None:
            answer.attach(partial(_hand_on, answer, pending))
        else:
            pending.complete(answer.parts)
    else:
        pending.complete([] if isinstance(answer, NoAnswer) else answer)


def _hand_on(held: Pending, pending: Pending) -> None:
    pending.complete(held.parts or [])


def _refuse_all(
    broker: Broker,
    version: int,
    correlation_id: int,
    request: ProduceRequestView,
    connection: Connection,
    error: HeadraceError,
) -> Answer:
    if request.acks == 0:
        raise error
    results: Results = [
        (topic, [_refusal(broker, _known_name(broker, topic), index, version, error) for index, _, _ in each])
        for topic, each in request.topics
    ]
    return [_encode(broker, version, correlation_id, results, connection)]


def _carry_out(
    broker: Broker,
    version: int,
    correlation_id: int,
    frame: memoryview,
    request: ProduceRequestView,
    connection: Connection,
    refused: Refusals,
) -> Answer:
    acks = request.acks
    in_transaction = request.transactional_id is not None
    now_ms = broker.clock.wall_ms()
    results: Results = []
    held = HeldProduce(broker, version, correlation_id, results)
    failed: HeadraceError | None = None
    for topic, partitions in request.topics:
        answers: list[PartitionResult] = []
        results.append((topic, answers))
        name = _known_name(broker, topic)
        for index, start, end in partitions:
            if refused and (name, index) in refused:
                code, text = refused[TopicPartition(name, index)]
                failed = HeadraceError(text)
                _count_failure(broker, name, version, code)
                answers.append(PartitionResult(index, code, error_message=text))
                continue
            records = frame[start:end] if start >= 0 else frame[:0]
            try:
                if not name and not isinstance(topic, str):
                    raise UnknownTopicId(f"no topic has the id {topic}")
                if name in INTERNAL_TOPICS:
                    _check_internal(broker, name, index, frame)
                partition, result = _append(
                    broker, name, index, records, version, acks, now_ms, in_transaction=in_transaction
                )
            except HeadraceError as error:
                failed = error
                answers.append(_refusal(broker, name, index, version, error))
                if acks != 0:
                    where = TopicPartition(name, index)
                    broker.refused_batches.note(where, records, error, broker.monotonic_ms())
                continue
            answers.append(_acknowledged(index, result))
            if (acks == ACKS_ALL and partition.high_watermark <= result[1]) or partition.must_sync_before_ack:
                held.hold(partition, result, answers, len(answers) - 1, acks)
    if acks == 0:
        if failed is not None:
            # Nobody reads an answer to acks=0: the only way to tell the producer is to hang up.
            raise failed
        return NO_ANSWER
    if held.is_waiting:
        return held.begin(request.timeout_ms)
    return [_encode(broker, version, correlation_id, results, connection)]


def _name_of(broker: Broker, topic_id: UUID) -> str:
    image = broker.image.topic_by_id(topic_id)
    if image is None:
        raise UnknownTopicId(f"no topic has the id {topic_id}")
    return image.name


def _known_name(broker: Broker, topic: Topic) -> str:
    """Empty for an id that no topic has."""
    if isinstance(topic, str):
        return topic
    image = broker.image.topic_by_id(topic)
    return "" if image is None else image.name


def _acknowledged(index: int, result: AppendResult) -> PartitionResult:
    return PartitionResult(index, 0, result.base_offset, result.append_time_ms, result.log_start_offset)


def _refusal(broker: Broker, topic: str, index: int, version: int, error: HeadraceError) -> PartitionResult:
    code = code_of(error)
    _count_failure(broker, topic, version, code)
    if isinstance(error, DiskFull):
        broker.metrics.refused_by_full_disks += 1
    current_leader = None
    if isinstance(error, NotLeader) and version >= FIRST_WITH_LEADER:
        image = broker.image.topic(topic)
        if image is not None and index in image:
            current_leader = (image.leader(index), image.leader_epoch(index))
    return PartitionResult(index, code, error_message=text_of(error), current_leader=current_leader)


def _encode(
    broker: Broker, version: int, correlation_id: int, results: Results, connection: Connection
) -> bytes:
    """With the addresses of leaders that it names (KIP-951): the producer need not ask for metadata."""
    leaders = [each.current_leader[0] for _, answers in results for each in answers if each.current_leader]
    endpoints = endpoints_of(broker, leaders, connection.listener) if leaders else ()
    return encode_produce_response(version, correlation_id, results, node_endpoints=endpoints)


def _count_failure(broker: Broker, topic: str, version: int, code: ErrorCode) -> None:
    metrics = broker.metrics.known_topic(topic)
    metrics.produce_requests += 1
    metrics.failed_produce_requests += 1
    broker.metrics.request("Produce", version).error(code.name)


def _check_internal(broker: Broker, topic: str, index: int, frame: memoryview) -> None:
    """Clients may not write what coordinators keep their state in."""
    image = broker.image.topic(topic)
    if image is not None and index in image and read_request_header(frame)[0].client_id != ADMIN_CLIENT:
        raise InvalidTopic(f"{topic} is written by brokers only")


def _append(
    broker: Broker,
    topic: str,
    index: int,
    records: memoryview,
    version: int,
    acks: int,
    now_ms: int,
    *,
    in_transaction: bool,
) -> tuple[Partition, AppendResult]:
    if acks not in ACKS:
        raise InvalidRequiredAcks(f"acks={acks}: only -1, 0 and 1 mean something")
    partition = broker.partitions.get(topic, index)
    try:
        header = check(records)
    except CorruptBatch as error:
        raise _told_as_kafka_does(records, error) from None
    size = header[1] + LOG_OVERHEAD
    attributes = header[5]
    if size != len(records):
        raise InvalidRecord("a produce request holds exactly one batch for each partition")
    if header[0] != 0:
        raise InvalidRecord(f"a producer's batch begins at offset 0, not {header[0]}")
    if attributes & TRANSACTIONAL_FLAG and not in_transaction:
        raise TransactionalIdNotAuthorized("a transactional batch in a request without a transactional id")
    if version < FIRST_WITH_ZSTD and attributes & 7 == Compression.ZSTD:
        raise UnsupportedCompression("zstd needs Produce 7 or later")
    if partition.log.directory.is_full:
        raise DiskFull(f"the log directory of {topic}-{index} is full")
    if broker.refused_batches:
        broker.refused_batches.check(partition, header, broker.monotonic_ms())
    result = partition.append(records, header, acks=acks, now_ms=now_ms)
    metrics = partition.metrics
    metrics.produce_requests += 1
    metrics.messages_in += header[12]
    metrics.bytes_in += size
    return partition, result


def _told_as_kafka_does(records: memoryview, error: CorruptBatch) -> HeadraceError:
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


API: Final = Api(ApiKey.PRODUCE, 0, 13, ProduceRequest, None)

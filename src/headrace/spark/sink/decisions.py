"""The topic of decisions: one for all sinks of a cluster, compacted, one partition.

It is read without regard to other sinks: a read_committed reader would wait for their open decisions. Instead
each record counts once the marker of its own transaction has come. Whoever has just taken a sink's decider id
finds all markers of that sink, for its coordinator ended whatever was open before it gave the id away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.client.admin import create_topic
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType, describe_many
from headrace.client.errors import ConnectionLost, Refused
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.client.producer import Producer
from headrace.client.refusals import refusal, refusal_of_leader
from headrace.client.transaction_ends import end
from headrace.client.transactional_producer import Records, TransactionalProducer
from headrace.core.ids import TopicPartition
from headrace.core.ports import Buffer
from headrace.protocol import batch as batches
from headrace.protocol.compression import Compression, compress
from headrace.protocol.control_records import ControlType, control_type
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.records import NewRecord, Record, decode_records, encode_batch
from headrace.spark.sink.decision import (
    Decision,
    SinkFailure,
    State,
    decode_decision,
    decode_ended,
    encode_decision,
    encode_ended,
)
from headrace.spark.sink.naming import decision_key, ended_key

_FETCH_AT_MOST: Final = 12
_FETCH_BYTES: Final = 8 * 1024 * 1024
_POLICY: Final = "cleanup.policy"
_LARGE: Final = 64 * 1024
"""Decisions above are compressed: notes repeat themselves, and a topic takes a million bytes by default."""
_FIRST_LOOK: Final = 200
"""How many of the last offsets are read first: a sink that is alive has its last decision there."""


async def prepare(cluster: Cluster, topic: str, holds: str = "decisions of sinks") -> None:
    """Make the topic if there is none. Every replica must have a decision, so it wants as many as may be."""
    try:
        await cluster.retried(lambda: cluster.topic(topic))
    except Refused as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    else:
        await _check_policy(cluster, topic, holds)
        return
    brokers = len((await cluster.metadata([])).brokers)
    replicas = min(3, brokers)
    settings = {"cleanup.policy": "compact", "min.insync.replicas": "2" if replicas == 3 else "1"}
    try:
        await create_topic(cluster, topic, partitions=1, replication_factor=replicas, configs=settings)
    except Refused as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def _check_policy(cluster: Cluster, topic: str, holds: str) -> None:
    resource = Resource(ResourceType.TOPIC, topic)
    found = await describe_many(cluster, [resource], [_POLICY])
    policy = next(
        (entry.value or "" for entry in found.get(resource, ()) if entry.name == _POLICY), "compact"
    )
    if policy != "compact":
        raise SinkFailure(
            f"topic {topic} is to hold {holds}, but its {_POLICY} is {policy}: they would be deleted. Set it "
            f"with `headrace config set --topic {topic} {_POLICY}=compact`, or name another topic"
        )


def committed(data: Buffer, pending: dict[int, list[Record]]) -> Iterator[Record]:
    """The records of whole batches that count. `pending` are those whose marker has not come, by producer."""
    for at, _ in batches.iterate(data):
        header = batches.check(data, at)
        records = list(decode_records(data, at))
        if header.is_control:
            waited = pending.pop(header.producer_id, [])
            if any(control_type(record) == ControlType.COMMIT for record in records):
                yield from waited
        elif header.is_transactional:
            pending.setdefault(header.producer_id, []).extend(records)
        else:
            yield from records


async def read_state(cluster: Cluster, topic: str, sink: str) -> State:
    """What the sink decided last, by the records that lie in the topic now."""
    partition = TopicPartition(topic, 0)
    first = (await list_offsets(cluster, {partition: EARLIEST}))[partition].offset
    last = (await list_offsets(cluster, {partition: LATEST}))[partition].offset
    look = _FIRST_LOOK
    while True:
        start = max(first, last - look)
        state = await _read_from(cluster, partition, start, last, sink)
        if state.decision is not None or start == first:
            return state
        look *= 16


async def _read_from(
    cluster: Cluster, partition: TopicPartition, start: int, end_offset: int, sink: str
) -> State:
    decided: Decision | None = None
    ended = -1
    pending: dict[int, list[Record]] = {}
    position = start
    while position < end_offset:
        data = await cluster.retried(lambda at=position: _fetch(cluster, partition, at, end_offset))  # type: ignore[misc]  # a lambda's default has no annotation
        before = position
        for record in committed(data, pending):
            if record.offset < start:
                continue
            if record.key == decision_key(sink):
                decided = None if record.value is None else decode_decision(record.value)
            elif record.key == ended_key(sink):
                ended = -1 if record.value is None else decode_ended(record.value)
        for _, header in batches.iterate(data):
            position = max(position, header.next_offset)
        if position == before:
            break  # what was there has been compacted away
    return State(decided, ended)


async def _fetch(cluster: Cluster, partition: TopicPartition, offset: int, end_offset: int) -> Buffer:
    """Nothing, only where nothing lies up to `end_offset`. A leader that has just been elected may hold more
    than it knows to be committed, and keeps that back without an error; it is asked again."""
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        isolation_level=0,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=partition.topic,
                partitions=[
                    FetchPartition(
                        partition=partition.partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
                    )
                ],
            )
        ],
    )
    leader = await cluster.leader(partition)
    reply = await cluster.ask_broker(leader, request, FetchResponse, at_most=_FETCH_AT_MOST)
    if reply.error_code:
        raise refusal(reply.error_code, f"partition {partition}")
    for topic in reply.responses:
        for data in topic.partitions:
            if data.error_code:
                raise refusal_of_leader(data.error_code, f"partition {partition}")
            if not data.records and data.high_watermark < end_offset:
                behind = f"its leader gives out {data.high_watermark} of {end_offset} offsets"
                raise refusal(ErrorCode.OFFSET_NOT_AVAILABLE, f"partition {partition}", behind)
            return data.records or b""
    raise ConnectionLost("the broker answered a fetch request without the partition")


async def append_decision(cluster: Cluster, topic: str, sink: str, decision: Decision) -> None:
    """The commit point. Refused if a later run has taken the decider id."""
    producer = TransactionalProducer(cluster, decision.decider)
    record = NewRecord(encode_decision(decision), decision_key(sink), decision.decided_ms)
    payload = bytes(encode_batch([record])[batches.HEADER_SIZE :])
    codec = Compression.GZIP if len(payload) > _LARGE else Compression.NONE
    records = Records(compress(codec, payload), 1, decision.decided_ms, decision.decided_ms, int(codec))
    try:
        await producer.send(TopicPartition(topic, 0), records)
        await producer.flush()
    except Refused as error:
        if error.code != ErrorCode.MESSAGE_TOO_LARGE:
            raise
        raise SinkFailure(
            f"the decision takes {len(records.payload)} bytes, with a note of {len(decision.note or '')} "
            f"characters: raise max.message.bytes of topic {topic}, or give shorter notes"
        ) from None
    finally:
        await producer.stop()
    await end(cluster, decision.decider, commit=True)


async def append_ended(cluster: Cluster, topic: str, sink: str, number: int, now_ms: int) -> None:
    """All transactions of that decision are committed. True whoever says it, so nobody has to be fenced."""
    await _append(cluster, topic, NewRecord(encode_ended(number), ended_key(sink), now_ms))


async def forget(cluster: Cluster, topic: str, sink: str, now_ms: int) -> None:
    """Whatever it decided is committed by now."""
    await _append(cluster, topic, NewRecord(None, decision_key(sink), now_ms))
    await _append(cluster, topic, NewRecord(None, ended_key(sink), now_ms))


async def _append(cluster: Cluster, topic: str, record: NewRecord) -> None:
    await Producer(cluster).send_batch(TopicPartition(topic, 0), [record])

"""The hand-written codecs of Produce and Fetch say and understand the same bytes as the generated ones."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.protocol import fetch_codec, headers, produce_codec
from headrace.protocol.messages import fetch_request, fetch_response, produce_request, produce_response
from headrace.protocol.primitives import ProtocolError
from tests.property.drawn_messages import draw

PRODUCE_VERSIONS = range(3, 14)
FIRST_WITH_TOPIC_IDS = 13
FETCH_VERSIONS = range(4, 19)

int16 = st.integers(-(1 << 15), (1 << 15) - 1)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
names = st.one_of(st.text(max_size=20), st.sampled_from(["t", "x" * 126, "x" * 127, "x" * 249, "x" * 250]))
maybe_text = st.none() | st.text(max_size=20)
blobs = st.one_of(
    st.none(), st.binary(max_size=40), st.sampled_from([126, 127, 16382, 16383, 70000]).map(bytes)
)
endpoints = st.lists(st.tuples(int32, st.text(max_size=9), int32, maybe_text), max_size=2)
# (-1, -1) is how the wire says that there is none.
pairs = st.none() | st.tuples(st.integers(0, 1 << 30), st.integers(0, 1 << 30))


# --- produce --------------------------------------------------------------------------------------------


def produce_requests(partitions: st.SearchStrategy[int]) -> st.SearchStrategy[produce_request.ProduceRequest]:
    partition = st.builds(produce_request.PartitionProduceData, index=int32, records=blobs)
    data = partitions.flatmap(lambda count: st.lists(partition, min_size=count, max_size=count))
    topic = st.builds(
        produce_request.TopicProduceData, name=names, topic_id=st.just(UUID(int=0)), partition_data=data
    )
    return st.builds(
        produce_request.ProduceRequest,
        transactional_id=maybe_text,
        acks=int16,
        timeout_ms=int32,
        topic_data=partitions.flatmap(lambda count: st.lists(topic, min_size=count, max_size=count)),
    )


def id_of(name: str) -> UUID:
    """What stands for a name where topics are named by their ids."""
    return UUID(bytes=name.encode("utf-8", "surrogatepass")[:16].ljust(16, b"\1"))


def encoded(message: produce_request.ProduceRequest, version: int) -> bytes:
    for topic in message.topic_data:
        topic.topic_id = id_of(topic.name) if version >= FIRST_WITH_TOPIC_IDS else UUID(int=0)
    return message.to_bytes(version)


def same_produce(
    view: produce_codec.ProduceRequestView,
    message: produce_request.ProduceRequest,
    frame: bytes,
    version: int,
) -> None:
    by_id = version >= FIRST_WITH_TOPIC_IDS
    assert view.acks == message.acks
    assert view.timeout_ms == message.timeout_ms
    assert view.transactional_id == message.transactional_id
    assert [
        (name, [(index, None if start < 0 else frame[start:end]) for index, start, end in partitions])
        for name, partitions in view.topics
    ] == [
        (
            topic.topic_id if by_id else topic.name,
            [(each.index, each.records) for each in topic.partition_data],
        )
        for topic in message.topic_data
    ]


@settings(max_examples=80, deadline=None)
@given(
    message=produce_requests(st.just(1)) | produce_requests(st.integers(0, 3)),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
)
def test_produce_requests_are_read_alike(
    message: produce_request.ProduceRequest, before: bytes, after: bytes
) -> None:
    for version in PRODUCE_VERSIONS:
        body = encoded(message, version)
        frame = before + body + after
        end = len(before) + len(body)
        view = produce_codec.parse_produce(memoryview(frame), len(before), version, end)
        same_produce(view, message, frame, version)


@settings(max_examples=80, deadline=None)
@given(
    message=produce_requests(st.just(1)) | produce_requests(st.integers(0, 3)),
    at=st.integers(0, 1 << 16),
    byte=st.integers(0, 255),
    cut=st.integers(-3, 3),
)
def test_damaged_produce_requests_are_judged_alike(
    message: produce_request.ProduceRequest, at: int, byte: int, cut: int
) -> None:
    for version in PRODUCE_VERSIONS:
        damaged = bytearray(encoded(message, version)) + bytes(max(cut, 0))
        damaged = damaged[: len(damaged) + min(cut, 0)]
        damaged[at % len(damaged)] = byte
        frame = bytes(damaged)
        try:
            expected = produce_request.ProduceRequest.from_bytes(frame, version)
        except ProtocolError:
            with pytest.raises(ProtocolError):
                produce_codec.parse_produce(memoryview(frame), 0, version)
        else:
            view = produce_codec.parse_produce(memoryview(frame), 0, version)
            same_produce(view, expected, frame, version)


results = st.builds(
    produce_codec.PartitionResult,
    partition=int32,
    error_code=st.sampled_from([0, 0, 0, 6, 87, -1]),
    base_offset=int64,
    log_append_time_ms=int64,
    log_start_offset=int64,
    record_errors=st.lists(st.tuples(int32, maybe_text), max_size=2),
    error_message=maybe_text,
    current_leader=pairs,
)
plain_results = st.tuples(int32, st.just(0), int64, int64, int64).map(
    lambda values: produce_codec.PartitionResult(*values)
)


def generated_result(
    result: produce_codec.PartitionResult, version: int
) -> produce_response.PartitionProduceResponse:
    leader = result.current_leader if version >= 10 else None
    return produce_response.PartitionProduceResponse(
        index=result.partition,
        error_code=result.error_code,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
        record_errors=[
            produce_response.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in result.record_errors
        ],
        error_message=result.error_message,
        current_leader=produce_response.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
        if leader
        else produce_response.LeaderIdAndEpoch(),
    )


@settings(max_examples=120, deadline=None)
@given(
    topics=st.one_of(
        st.tuples(names, st.tuples(plain_results)).map(lambda topic: [topic]),
        st.lists(st.tuples(names, st.lists(plain_results, max_size=3)), max_size=3),
        st.lists(st.tuples(names, st.lists(results, max_size=3)), max_size=3),
    ),
    correlation_id=int32,
    throttle_ms=int32,
    nodes=endpoints,
)
def test_produce_responses_are_written_alike(
    topics: list[tuple[str, list[produce_codec.PartitionResult]]],
    correlation_id: int,
    throttle_ms: int,
    nodes: list[tuple[int, str, int, str | None]],
) -> None:
    for version in PRODUCE_VERSIONS:
        by_id = version >= FIRST_WITH_TOPIC_IDS
        message = produce_response.ProduceResponse(
            responses=[
                produce_response.TopicProduceResponse(
                    name="" if by_id else name,
                    topic_id=id_of(name) if by_id else UUID(int=0),
                    partition_responses=[generated_result(result, version) for result in partitions],
                )
                for name, partitions in topics
            ],
            throttle_time_ms=throttle_ms,
            node_endpoints=[
                produce_response.NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in nodes
            ]
            if version >= 10
            else [],
        )
        told = [(id_of(name) if by_id else name, each) for name, each in topics]
        written = produce_codec.encode_produce_response(version, correlation_id, told, throttle_ms, nodes)
        assert written == headers.frame_response(message, version, correlation_id)


# --- fetch ----------------------------------------------------------------------------------------------


def same_fetch(view: fetch_codec.FetchRequestView, message: fetch_request.FetchRequest, version: int) -> None:
    with_state = version >= 15
    assert view.replica_id == (message.replica_state.replica_id if with_state else message.replica_id)
    assert view.replica_epoch == (message.replica_state.replica_epoch if with_state else -1)
    for name in ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch"):
        assert getattr(view, name) == getattr(message, name)
    assert view.rack_id == message.rack_id
    assert view.cluster_id == message.cluster_id

    def topic_of(topic: fetch_request.FetchTopic | fetch_request.ForgottenTopic) -> str | UUID:
        return topic.topic_id if version >= 13 else topic.topic

    assert view.topics == [
        (
            topic_of(topic),
            [
                fetch_codec.FetchPartition(
                    partition=each.partition,
                    current_leader_epoch=each.current_leader_epoch,
                    fetch_offset=each.fetch_offset,
                    last_fetched_epoch=each.last_fetched_epoch,
                    log_start_offset=each.log_start_offset,
                    max_bytes=each.partition_max_bytes,
                )
                for each in topic.partitions
            ],
        )
        for topic in message.topics
    ]
    assert view.forgotten == [(topic_of(topic), topic.partitions) for topic in message.forgotten_topics_data]


@settings(max_examples=80, deadline=None)
@given(source=st.binary(max_size=300), before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_fetch_requests_are_read_alike(source: bytes, before: bytes, after: bytes) -> None:
    for version in FETCH_VERSIONS:
        message = draw(fetch_request.FetchRequest, version, source)
        assert isinstance(message, fetch_request.FetchRequest)
        body = message.to_bytes(version)
        frame = memoryview(before + body + after)
        view = fetch_codec.parse_fetch(frame, len(before), version, len(before) + len(body))
        same_fetch(view, message, version)


@settings(max_examples=80, deadline=None)
@given(
    partitions=st.integers(0, 1),
    head=st.tuples(int32, int32, int32, int32, int32),
    offset=int64,
    replica=st.none() | st.tuples(int32, int64),
    at=st.integers(0, 1 << 16),
    byte=st.none() | st.integers(0, 255),
)
@example(partitions=0, head=(0, 0, 0, 0, 0), offset=0, replica=None, at=0, byte=None)
@example(partitions=0, head=(0, 0, 0, 0, 0), offset=0, replica=(1, 2), at=0, byte=None)
@example(partitions=1, head=(0, 0, 0, 0, 0), offset=0, replica=(1, 2), at=0, byte=None)
def test_the_commonest_fetch_requests_are_read_alike(
    partitions: int,
    head: tuple[int, int, int, int, int],
    offset: int,
    replica: tuple[int, int] | None,
    at: int,
    byte: int | None,
) -> None:
    """An unchanged session or one partition, of a consumer or a replica, also damaged: each has its path."""
    topic = fetch_request.FetchTopic(
        topic="t",
        topic_id=UUID(int=7),
        partitions=[fetch_request.FetchPartition(partition=3, fetch_offset=offset, partition_max_bytes=9)],
    )
    message = fetch_request.FetchRequest(
        max_wait_ms=head[0],
        min_bytes=head[1],
        max_bytes=head[2],
        isolation_level=1,
        session_id=head[3],
        session_epoch=head[4],
        topics=[topic] * partitions,
    )
    if replica is not None:
        message.replica_state = fetch_request.ReplicaState(replica_id=replica[0], replica_epoch=replica[1])
    for version in range(13 if replica is None else 15, 19):
        body = bytearray(message.to_bytes(version))
        if byte is not None:
            body[at % len(body)] = byte
        try:
            expected = fetch_request.FetchRequest.from_bytes(body, version)
        except ProtocolError:
            with pytest.raises(ProtocolError):
                fetch_codec.parse_fetch(memoryview(body), 0, version)
        else:
            same_fetch(fetch_codec.parse_fetch(memoryview(body), 0, version), expected, version)


fetched = st.builds(
    fetch_codec.FetchedPartition,
    partition=int32,
    error_code=int16,
    high_watermark=int64,
    last_stable_offset=int64,
    log_start_offset=int64,
    records_size=st.sampled_from([-1, 0, 1, 126, 127, 16382, 16383, 2097150, 2097151]),
    aborted=st.none() | st.lists(st.tuples(int64, int64), max_size=2),
    preferred_read_replica=int32,
    diverging_epoch=pairs,
    current_leader=pairs,
)


def generated_partition(each: fetch_codec.FetchedPartition, version: int) -> fetch_response.PartitionData:
    flexible = version >= 12
    message = fetch_response.PartitionData(
        partition_index=each.partition,
        error_code=each.error_code,
        high_watermark=each.high_watermark,
        last_stable_offset=each.last_stable_offset,
        log_start_offset=each.log_start_offset,
        aborted_transactions=None
        if each.aborted is None
        else [
            fetch_response.AbortedTransaction(producer_id=one, first_offset=two) for one, two in each.aborted
        ],
        preferred_read_replica=each.preferred_read_replica if version >= 11 else -1,
        records=None if each.records_size < 0 else bytes(each.records_size),
    )
    if flexible and each.diverging_epoch:
        message.diverging_epoch.epoch, message.diverging_epoch.end_offset = each.diverging_epoch
    if flexible and each.current_leader:
        message.current_leader.leader_id, message.current_leader.leader_epoch = each.current_leader
    return message


@settings(max_examples=60, deadline=None)
@given(
    topics=st.lists(st.tuples(names, st.lists(fetched, max_size=2)), max_size=2),
    head=st.tuples(int32, int32, int16, int32),
    nodes=endpoints,
)
def test_fetch_responses_are_written_alike(
    topics: list[tuple[str, list[fetch_codec.FetchedPartition]]],
    head: tuple[int, int, int, int],
    nodes: list[tuple[int, str, int, str | None]],
) -> None:
    correlation_id, throttle_ms, error_code, session_id = head
    for version in FETCH_VERSIONS:
        named: list[tuple[str | UUID, list[fetch_codec.FetchedPartition]]] = [
            (UUID(int=len(name)) if version >= 13 else name, partitions) for name, partitions in topics
        ]
        message = fetch_response.FetchResponse(
            throttle_time_ms=throttle_ms,
            error_code=error_code if version >= 7 else 0,
            session_id=session_id if version >= 7 else 0,
            responses=[
                fetch_response.FetchableTopicResponse(
                    topic=topic if isinstance(topic, str) else "",
                    topic_id=topic if isinstance(topic, UUID) else UUID(int=0),
                    partitions=[generated_partition(each, version) for each in partitions],
                )
                for topic, partitions in named
            ],
            node_endpoints=[
                fetch_response.NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in nodes
            ]
            if version >= 16
            else [],
        )
        chunks, total = fetch_codec.encode_fetch_response(
            version,
            correlation_id,
            named,
            throttle_ms=throttle_ms,
            error_code=error_code,
            session_id=session_id,
            node_endpoints=nodes,
        )
        sizes = [max(each.records_size, 0) for _, partitions in topics for each in partitions]
        assert len(chunks) == len(sizes) + 1
        sent = b"".join(chunk + bytes(size) for chunk, size in zip(chunks, [*sizes, 0], strict=True))
        assert len(sent) == total
        assert sent == headers.frame_response(message, version, correlation_id)

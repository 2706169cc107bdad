"""The follower's codec of Fetch says and understands the same bytes as the generated classes."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol import headers
from headrace.protocol.messages import fetch_request, fetch_response
from headrace.protocol.primitives import ProtocolError
from headrace.protocol.replica_fetch_codec import (
    VERSION,
    FetchedPartitionData,
    ReplicaFetchAnswer,
    ReplicaFetchEncoder,
    WantedPartition,
    parse_replica_fetch,
)
from tests.property.drawn_messages import draw

int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
ids = st.binary(min_size=16, max_size=16)
wanted = st.tuples(int32, int32, int64, int32, int64, int32)


@settings(max_examples=150, deadline=None)
@given(
    topics=st.one_of(
        st.just([]),
        st.tuples(ids, st.lists(wanted, min_size=1, max_size=1)).map(lambda topic: [topic]),
        st.lists(st.tuples(ids, st.lists(wanted, max_size=200)), max_size=3),
    ),
    forgotten=st.just([]) | st.lists(st.tuples(ids, st.lists(int32, max_size=3)), max_size=3),
    head=st.tuples(int32, int32, int32, int32, int32, int32),
    replica=st.tuples(st.integers(0, 1 << 30), int64),
    client_id=st.text(max_size=10),
)
def test_requests_are_written_alike(
    topics: list[tuple[bytes, list[WantedPartition]]],
    forgotten: list[tuple[bytes, list[int]]],
    head: tuple[int, int, int, int, int, int],
    replica: tuple[int, int],
    client_id: str,
) -> None:
    correlation_id, session_id, session_epoch, max_wait_ms, min_bytes, max_bytes = head
    message = fetch_request.FetchRequest(
        replica_state=fetch_request.ReplicaState(replica_id=replica[0], replica_epoch=replica[1]),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            fetch_request.FetchTopic(
                topic_id=UUID(bytes=topic),
                partitions=[
                    fetch_request.FetchPartition(
                        partition=each[0],
                        current_leader_epoch=each[1],
                        fetch_offset=each[2],
                        last_fetched_epoch=each[3],
                        log_start_offset=each[4],
                        partition_max_bytes=each[5],
                    )
                    for each in partitions
                ],
            )
            for topic, partitions in topics
        ],
        forgotten_topics_data=[
            fetch_request.ForgottenTopic(topic_id=UUID(bytes=topic), partitions=partitions)
            for topic, partitions in forgotten
        ],
    )
    encoder = ReplicaFetchEncoder(
        client_id,
        replica_id=replica[0],
        replica_epoch=replica[1],
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
    )
    written = encoder.encode(correlation_id, session_id, session_epoch, topics, forgotten)
    assert written == headers.frame_request(message, VERSION, correlation_id, client_id)[4:]


def pair(one: int, two: int) -> tuple[int, int] | None:
    return None if (one, two) == (-1, -1) else (one, two)


def expected(message: fetch_response.FetchResponse, correlation_id: int) -> ReplicaFetchAnswer:
    return ReplicaFetchAnswer(
        correlation_id,
        message.throttle_time_ms,
        message.error_code,
        message.session_id,
        [
            (
                topic.topic_id.bytes,
                [
                    FetchedPartitionData(
                        each.partition_index,
                        each.error_code,
                        each.high_watermark,
                        each.log_start_offset,
                        memoryview(each.records or b""),
                        pair(each.diverging_epoch.epoch, each.diverging_epoch.end_offset),
                        pair(each.current_leader.leader_id, each.current_leader.leader_epoch),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in message.responses
        ],
    )


@settings(max_examples=150, deadline=None)
@given(source=st.binary(max_size=300), correlation_id=int32)
def test_answers_are_read_alike(source: bytes, correlation_id: int) -> None:
    message = draw(fetch_response.FetchResponse, VERSION, source)
    assert isinstance(message, fetch_response.FetchResponse)
    frame = headers.frame_response(message, VERSION, correlation_id)[4:]
    assert parse_replica_fetch(memoryview(frame)) == expected(message, correlation_id)


@settings(max_examples=300, deadline=None)
@given(
    partitions=st.sampled_from([0, 1, 1, 1, 2]),
    numbers=st.tuples(int32, int64, int64),
    size=st.sampled_from([None, 0, 1, 126, 127, 16382, 16383, 70_000, 2_097_151]),
    aborted=st.sampled_from([None, 0, 0, 1]),
    diverging=st.booleans(),
    damage=st.none() | st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)),
    cut=st.sampled_from([0, 0, 0, -3, -1, 1, 2]),
)
def test_the_commonest_answers_are_read_alike(
    partitions: int,
    numbers: tuple[int, int, int],
    size: int | None,
    aborted: int | None,
    diverging: bool,
    damage: tuple[int, int] | None,
    cut: int,
) -> None:
    """None or one partition, also damaged: both have a path of their own."""
    data = fetch_response.PartitionData(
        partition_index=numbers[0],
        error_code=6,
        high_watermark=numbers[1],
        log_start_offset=numbers[2],
        aborted_transactions=None if aborted is None else [fetch_response.AbortedTransaction()] * aborted,
        records=None if size is None else bytes(size),
    )
    if diverging:
        data.diverging_epoch.epoch, data.diverging_epoch.end_offset = 3, 4
    topic = fetch_response.FetchableTopicResponse(
        topic_id=UUID(int=7), partitions=[data] * max(partitions, 1)
    )
    message = fetch_response.FetchResponse(session_id=numbers[0], responses=[topic] * min(partitions, 1))
    frame = bytearray(headers.frame_response(message, VERSION, 9)[4:])
    if damage is not None:
        frame[5 + damage[0] % min(len(frame) - 5, 80)] = damage[1]  # where the lengths and the counts are
    frame = (frame + bytes(max(cut, 0)))[: len(frame) + cut]
    try:
        body = headers.read_response_header(frame, message.API_KEY, VERSION)[1]
        judged = fetch_response.FetchResponse.from_bytes(frame[body:], VERSION)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            parse_replica_fetch(memoryview(frame))
    else:
        assert parse_replica_fetch(memoryview(frame)) == expected(judged, 9)


def test_records_are_not_copied() -> None:
    data = fetch_response.PartitionData(records=b"abc")
    topic = fetch_response.FetchableTopicResponse(partitions=[data])
    frame = bytearray(headers.frame_response(fetch_response.FetchResponse(responses=[topic]), VERSION, 9)[4:])
    records = parse_replica_fetch(memoryview(frame)).topics[0][1][0].records
    frame[frame.index(b"abc")] = ord("x")
    assert bytes(records) == b"xbc"

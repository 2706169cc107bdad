"""Produce and Fetch of so many partitions that they are served in turns: they say what short ones say."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.fetch import fetching
from headrace.broker.handlers import metadata as metadata_handler
from headrace.broker.handlers import produce as produce_handler
from headrace.broker.storage.late_removals import AT_ONCE as REMOVED_AT_ONCE
from headrace.protocol.batch import read_header
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages import create_topics_request as create
from headrace.protocol.messages import fetch_request as fetch
from headrace.protocol.messages import metadata_request as metadata
from headrace.protocol.messages import produce_request as produce
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest
from headrace.protocol.messages.delete_topics_response import DeleteTopicsResponse
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.cluster import Cluster
from tests.wire import Wire

TOPIC = "wide"
PARTITIONS = 600
EVERYTHING = range(PARTITIONS)
FETCH = 17
PRODUCE = 9
LONG_FETCHES = {"a long fetch", "a large fetch"}
"""The names of their tasks. A request of more than 16 KB is a large one."""
assert (
    max(fetching.AT_ONCE, produce_handler.AT_ONCE, metadata_handler.FEW_PARTITIONS, REMOVED_AT_ONCE)
    < PARTITIONS
)


def connect(cluster: Cluster) -> Wire:
    return Wire(int(cluster.bootstrap.rpartition(":")[2]), timeout=60)


def make(wire: Wire, name: str = TOPIC) -> UUID:
    topic = create.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
    made = wire.ask(create.CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7, CreateTopicsResponse)
    assert made.topics[0].error_code == 0
    found: UUID = made.topics[0].topic_id
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def topic_id(cluster: Cluster) -> UUID:
    with connect(cluster) as wire:
        return make(wire)


def produce_to(wire: Wire, indexes: Any, acks: int = 1) -> dict[int, tuple[int, int]]:
    """The error and the offset of each partition."""
    batch = bytes(encode_batch([NewRecord(b"v", timestamp=1)]))
    rows = [produce.PartitionProduceData(index=index, records=batch) for index in indexes]
    topics = [produce.TopicProduceData(name=TOPIC, partition_data=rows)]
    request = produce.ProduceRequest(acks=acks, timeout_ms=9000, topic_data=topics)
    answer = wire.ask(request, PRODUCE, ProduceResponse)
    return {row.index: (row.error_code, row.base_offset) for row in answer.responses[0].partition_responses}


def wanted(
    topic_id: UUID, offsets: dict[int, int], *, wait_ms: int = 0, session_id: int = 0, epoch: int = -1
) -> fetch.FetchRequest:
    rows = [
        fetch.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in offsets.items()
    ]
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 30,
        session_id=session_id,
        session_epoch=epoch,
        topics=[fetch.FetchTopic(topic_id=topic_id, partitions=rows)] if rows else [],
    )


def ends(answer: FetchResponse) -> dict[int, int]:
    return {row.partition_index: row.high_watermark for topic in answer.responses for row in topic.partitions}


@pytest.mark.parametrize("acks", [1, -1])
def test_each_partition_of_a_produce_has_its_answer(cluster: Cluster, topic_id: UUID, acks: int) -> None:
    with connect(cluster) as wire:
        before = ends(wire.ask(wanted(topic_id, dict.fromkeys(EVERYTHING, 0)), FETCH, FetchResponse))
        answers = produce_to(wire, [*EVERYTHING, PARTITIONS], acks)
    unknown = answers.pop(PARTITIONS)[0]
    assert unknown == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers == {index: (0, before[index]) for index in EVERYTHING}


def test_requests_of_one_connection_take_effect_in_order(cluster: Cluster, topic_id: UUID) -> None:
    """Also one that is sent behind a produce that has its turns."""
    batch = bytes(encode_batch([NewRecord(b"v", timestamp=1)]))
    with connect(cluster) as wire:
        last = ends(wire.ask(wanted(topic_id, {599: 0}), FETCH, FetchResponse))[599]
        ids = []
        for indexes in (EVERYTHING, [599]):
            rows = [produce.PartitionProduceData(index=index, records=batch) for index in indexes]
            topics = [produce.TopicProduceData(name=TOPIC, partition_data=rows)]
            body = produce.ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics).to_bytes(PRODUCE)
            ids.append(wire.send_body(0, PRODUCE, body))
        offsets = []
        for correlation_id in ids:
            answer = ProduceResponse.from_bytes(wire.receive_body(0, PRODUCE, correlation_id), PRODUCE)
            offsets.append(answer.responses[0].partition_responses[-1].base_offset)
    assert offsets == [last, last + 1]


def test_a_fetch_without_a_session_waits_and_is_woken(cluster: Cluster, topic_id: UUID) -> None:
    with connect(cluster) as wire, connect(cluster) as writer:
        now = ends(wire.ask(wanted(topic_id, dict.fromkeys(EVERYTHING, 0)), FETCH, FetchResponse))
        request = wanted(topic_id, now, wait_ms=30_000).to_bytes(FETCH)
        correlation_id = wire.send_body(1, FETCH, request)
        wire.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        wire.socket.settimeout(20)
        produce_to(writer, [7])
        answer = FetchResponse.from_bytes(wire.receive_body(1, FETCH, correlation_id), FETCH)
    assert len(ends(answer)) == PARTITIONS
    assert [row.partition_index for row in answer.responses[0].partitions if row.records] == [7]


class WritingTurns:
    """A record comes to a partition that a long fetch has read, before the fetch is done with the others.

    In place of the turns that the broker gives: its handlers may be compiled, and then take no other method.
    """

    is_over = True

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._plain = cluster.broker.runtime.turns
        self._slices: Counter[object] = Counter()
        """By fetch."""

    async def next(self) -> None:
        await self._plain.next()
        task = asyncio.current_task()
        assert task is not None
        self._slices[task] += 1
        if task.get_name() in LONG_FETCHES and self._slices[task] == 2:
            partition = self._cluster.broker.partitions.get(TOPIC, 3)
            batch = encode_batch([NewRecord(b"v", timestamp=1)])
            partition.append(batch, read_header(batch), acks=1, now_ms=1)


@pytest.fixture
def written_behind_it(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetching.READ_TOGETHER > 3, "it is read in the first slice"
    monkeypatch.setattr(cluster.broker.runtime, "turns", WritingTurns(cluster))


@pytest.mark.usefixtures("written_behind_it")
def test_a_session_hears_of_what_is_written_while_it_is_read(cluster: Cluster, topic_id: UUID) -> None:
    with connect(cluster) as wire:
        now = ends(wire.ask(wanted(topic_id, dict.fromkeys(EVERYTHING, 0)), FETCH, FetchResponse))
        now[3] += 1  # by the fetch itself
        first = wire.ask(wanted(topic_id, now, epoch=0), FETCH, FetchResponse)
        assert ends(first)[3] == now[3]
        request = wanted(topic_id, {}, session_id=first.session_id, epoch=1)
        assert ends(wire.ask(request, FETCH, FetchResponse)) == {3: now[3] + 1}


@pytest.mark.usefixtures("written_behind_it")
def test_a_fetch_does_not_wait_for_what_is_written_while_it_is_read(cluster: Cluster, topic_id: UUID) -> None:
    with connect(cluster) as wire:
        now = ends(wire.ask(wanted(topic_id, dict.fromkeys(EVERYTHING, 0)), FETCH, FetchResponse))
        now[3] += 1
        wire.socket.settimeout(20)
        answer = wire.ask(wanted(topic_id, now, wait_ms=100_000), FETCH, FetchResponse)
        assert ends(answer) == now


def test_metadata_of_a_wide_topic_is_in_the_order_of_the_question(cluster: Cluster, topic_id: UUID) -> None:
    names = ["missing-1", TOPIC, "missing-2"]
    asked = [metadata.MetadataRequestTopic(name=name) for name in names]
    request = metadata.MetadataRequest(
        topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )
    with connect(cluster) as wire:
        for _ in range(2):
            answer = wire.ask(request, 12, MetadataResponse)
            assert [topic.name for topic in answer.topics] == names
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert [topic.error_code for topic in answer.topics] == [unknown, 0, unknown]
            assert [row.partition_index for row in answer.topics[1].partitions] == [*EVERYTHING]
            assert answer.topics[1].topic_authorized_operations > 0
            assert answer.topics[1].topic_id == topic_id
        many = [metadata.MetadataRequestTopic(name=f"absent-{each}") for each in range(200)]
        request.topics = [*many, metadata.MetadataRequestTopic(name=TOPIC), *asked[2:]]
        answer = wire.ask(request, 12, MetadataResponse)
        assert [topic.name for topic in answer.topics] == [topic.name for topic in request.topics]


def test_a_deleted_topic_is_gone_at_once_and_its_name_is_free(cluster: Cluster) -> None:
    with connect(cluster) as wire:
        old = make(wire, "gone")
        request = DeleteTopicsRequest(topic_names=["gone"], timeout_ms=60_000)
        assert wire.ask(request, 5, DeleteTopicsResponse).responses[0].error_code == 0
        row = fetch.FetchPartition(partition=PARTITIONS - 1, partition_max_bytes=1000)
        asked = fetch.FetchRequest(
            max_wait_ms=0, session_epoch=-1, topics=[fetch.FetchTopic(topic_id=old, partitions=[row])]
        )
        answer = wire.ask(asked, FETCH, FetchResponse)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        new = make(wire, "gone")
        offsets = dict.fromkeys(EVERYTHING, 0)
        answer = wire.ask(wanted(new, offsets), FETCH, FetchResponse)
        assert {row.error_code for row in answer.responses[0].partitions} == {0}

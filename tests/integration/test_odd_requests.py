"""Requests that no client sends and that a broker has to have an answer to."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from headrace.core.ids import NO_TOPIC_ID
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headrace.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.cluster import Cluster
from tests.sealed_batches import sealed
from tests.wire import Wire


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with Cluster() as cluster, Wire(int(cluster.bootstrap.rpartition(":")[2])) as wire:
        topic = CreatableTopic(name="orders", num_partitions=3, replication_factor=1)
        wire.ask(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse)
        yield wire


@pytest.mark.parametrize("index", [-1, -100])
def test_a_cursor_before_the_first_partition_is_refused(wire: Wire, index: int) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name="orders")], cursor=Cursor(topic_name="orders", partition_index=index)
    )
    answer = wire.ask(request, 0, DescribeTopicPartitionsResponse)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("orders", ErrorCode.INVALID_REQUEST)
    ]


def test_a_cursor_behind_the_last_partition_goes_on_with_the_next_topic(wire: Wire) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name="orders")],
        cursor=Cursor(topic_name="orders", partition_index=2**31 - 1),
        response_partition_limit=1,
    )
    answer = wire.ask(request, 0, DescribeTopicPartitionsResponse)
    assert answer.topics[0].partitions == []
    assert answer.next_cursor is None


@pytest.mark.parametrize("version", [10, 11])
def test_a_topic_without_a_name_is_refused_where_it_cannot_be_asked_for_by_id(
    wire: Wire, version: int
) -> None:
    asked = [
        MetadataRequestTopic(name=None, topic_id=NO_TOPIC_ID),
        MetadataRequestTopic(name="orders"),
    ]
    answer = wire.ask(MetadataRequest(topics=asked), version, MetadataResponse)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("", ErrorCode.INVALID_REQUEST),
        ("orders", ErrorCode.INVALID_REQUEST),
    ]


@pytest.mark.parametrize("kind", ["noise", "too many"])
def test_a_batch_that_cannot_be_read_is_not_stored(wire: Wire, kind: str) -> None:
    """librdkafka would deliver nothing from that partition any more, and say nothing."""
    good = bytes(encode_batch([NewRecord(b"v", timestamp=1)]))
    batch = sealed(random.Random(1).randbytes(200), 5) if kind == "noise" else sealed(good[61:], 2**31 - 1)
    for records, code in ((batch, ErrorCode.INVALID_RECORD), (good, ErrorCode.NONE)):
        data = PartitionProduceData(index=0 if kind == "noise" else 1, records=records)
        topics = [TopicProduceData(name="orders", partition_data=[data])]
        request = ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics)
        row = wire.ask(request, 9, ProduceResponse).responses[0].partition_responses[0]
        assert row.error_code == code
    assert row.base_offset == 0


@pytest.mark.parametrize("version", [0, 1, 8, 9, 12])
def test_all_of_many_topics_are_told_as_when_they_are_asked_for(wire: Wire, version: int) -> None:
    names = [f"many-{number}" for number in range(30)]
    wanted = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    wire.ask(CreateTopicsRequest(topics=wanted), 7, CreateTopicsResponse)
    asked = [MetadataRequestTopic(name=name) for name in names]
    one_by_one = wire.ask(MetadataRequest(topics=asked), version, MetadataResponse)
    everything = MetadataRequest(topics=[] if version == 0 else None)
    for _ in range(2):
        answer = wire.ask(everything, version, MetadataResponse)
        told = {topic.name: topic for topic in answer.topics}
        assert [told[topic.name] for topic in one_by_one.topics] == one_by_one.topics
        assert answer.brokers == one_by_one.brokers

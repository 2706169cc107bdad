"""The dearest requests that are valid: none of them holds the loop for long, and each is answered in full."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from crc32c import crc32c

from headrace.protocol.compression import Compression, compress
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages import (
    alter_partition_reassignments_request as reassign,
)
from headrace.protocol.messages import (
    consumer_group_heartbeat_request as heartbeat,
)
from headrace.protocol.messages import (
    create_topics_request as create,
)
from headrace.protocol.messages import (
    delete_topics_request as delete,
)
from headrace.protocol.messages import (
    describe_configs_request as configs,
)
from headrace.protocol.messages import (
    describe_groups_request as groups,
)
from headrace.protocol.messages import (
    fetch_request as fetch,
)
from headrace.protocol.messages import (
    find_coordinator_request as find,
)
from headrace.protocol.messages import (
    list_offsets_request as offsets,
)
from headrace.protocol.messages import (
    metadata_request as metadata,
)
from headrace.protocol.messages import (
    offset_commit_request as commit,
)
from headrace.protocol.messages import (
    offset_fetch_request as offset_fetch,
)
from headrace.protocol.messages import (
    produce_request as produce,
)
from headrace.protocol.messages import (
    write_txn_markers_request as markers,
)
from headrace.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.delete_topics_response import DeleteTopicsResponse
from headrace.protocol.messages.describe_configs_response import DescribeConfigsResponse
from headrace.protocol.messages.describe_groups_response import DescribeGroupsResponse
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from headrace.protocol.offset_timestamps import MAX_TIMESTAMP
from headrace.protocol.record_spans import varint
from headrace.testing.cluster import Cluster
from tests.loop_turns import turns_of
from tests.wire import Wire

LONGEST_MS = 50.0
TOPIC = "orders"
PARTITIONS = 200


def connect(cluster: Cluster) -> Wire:
    return Wire(int(cluster.bootstrap.rpartition(":")[2]), timeout=240)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        with connect(cluster) as wire:
            topics = [create.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)]
            wire.ask(create.CreateTopicsRequest(topics=topics), 7, CreateTopicsResponse)
            for kind in (0, 1):
                request = find.FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
                wire.ask(request, 4, FindCoordinatorResponse)
            one = COSTS["OffsetCommit of what does not exist"].make(1)
            while wire.ask(one, 9, OffsetCommitResponse).topics[0].partitions[0].error_code != UNKNOWN:
                pass  # the coordinator is being loaded
        yield cluster


class Cost(NamedTuple):
    version: int
    things: int
    make: Callable[[int], Message]
    """The request that lists so many things."""
    response: type[Message]
    rows: Callable[[Any], list[int]]
    """The error of each row."""
    error: int = 0


def _rows(outer: str, inner: str) -> Callable[[Any], list[int]]:
    return lambda answer: [
        row.error_code for topic in getattr(answer, outer) for row in getattr(topic, inner)
    ]


def _errors(outer: str) -> Callable[[Any], list[int]]:
    return lambda answer: [row.error_code for row in getattr(answer, outer)]


UNKNOWN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

COSTS: dict[str, Cost] = {
    "Metadata of unknown names": Cost(
        12,
        200_000,
        lambda count: metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=f"n{each}") for each in range(count)],
            allow_auto_topic_creation=False,
        ),
        MetadataResponse,
        _errors("topics"),
        UNKNOWN,
    ),
    "CreateTopics that only validates": Cost(
        7,
        10_000,
        lambda count: create.CreateTopicsRequest(
            topics=[
                create.CreatableTopic(name=f"n{each}", num_partitions=1, replication_factor=1)
                for each in range(count)
            ],
            validate_only=True,
        ),
        CreateTopicsResponse,
        _errors("topics"),
    ),
    "CreateTopics with a million partitions": Cost(
        7,
        1,
        lambda _count: create.CreateTopicsRequest(
            topics=[create.CreatableTopic(name="large", num_partitions=1_000_000, replication_factor=1)],
        ),
        CreateTopicsResponse,
        _errors("topics"),
        ErrorCode.POLICY_VIOLATION,
    ),
    "OffsetCommit of what does not exist": Cost(
        9,
        200_000,
        lambda count: commit.OffsetCommitRequest(
            group_id="g",
            topics=[
                commit.OffsetCommitRequestTopic(
                    name="missing",
                    partitions=[
                        commit.OffsetCommitRequestPartition(partition_index=each, committed_offset=1)
                        for each in range(count)
                    ],
                )
            ],
        ),
        OffsetCommitResponse,
        _rows("topics", "partitions"),
        UNKNOWN,
    ),
    "OffsetFetch of what does not exist": Cost(
        9,
        200_000,
        lambda count: offset_fetch.OffsetFetchRequest(
            groups=[
                offset_fetch.OffsetFetchRequestGroup(
                    group_id="g",
                    topics=[
                        offset_fetch.OffsetFetchRequestTopics(
                            name=TOPIC, partition_indexes=list(range(count))
                        )
                    ],
                )
            ]
        ),
        OffsetFetchResponse,
        lambda answer: [row.error_code for row in answer.groups[0].topics[0].partitions],
    ),
    "ListOffsets of what does not exist": Cost(
        7,
        100_000,
        lambda count: offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                offsets.ListOffsetsTopic(
                    name="missing",
                    partitions=[
                        offsets.ListOffsetsPartition(partition_index=each, timestamp=-1)
                        for each in range(count)
                    ],
                )
            ],
        ),
        ListOffsetsResponse,
        _rows("topics", "partitions"),
        UNKNOWN,
    ),
    "DescribeConfigs of everything, under many names": Cost(
        4,
        1_000,
        lambda count: configs.DescribeConfigsRequest(
            resources=[
                configs.DescribeConfigsResource(resource_type=4, resource_name=name, configuration_keys=None)
                for name in ("", "0", *(str(each) for each in range(2, count)))
            ],
            include_synonyms=True,
            include_documentation=True,
        ),
        DescribeConfigsResponse,
        _errors("results"),
        -1,
    ),
    "FindCoordinator of many groups": Cost(
        4,
        100_000,
        lambda count: find.FindCoordinatorRequest(
            key_type=0, coordinator_keys=[str(each) for each in range(count)]
        ),
        FindCoordinatorResponse,
        _errors("coordinators"),
    ),
    "DescribeGroups of many groups": Cost(
        5,
        20_000,
        lambda count: groups.DescribeGroupsRequest(groups=[str(each) for each in range(count)]),
        DescribeGroupsResponse,
        _errors("groups"),
    ),
    "DeleteTopics of what does not exist": Cost(
        5,
        50_000,
        lambda count: delete.DeleteTopicsRequest(topic_names=[str(each) for each in range(count)]),
        DeleteTopicsResponse,
        _errors("responses"),
        UNKNOWN,
    ),
    "AlterPartitionReassignments of what does not exist": Cost(
        0,
        100_000,
        lambda count: reassign.AlterPartitionReassignmentsRequest(
            topics=[
                reassign.ReassignableTopic(
                    name="missing",
                    partitions=[
                        reassign.ReassignablePartition(partition_index=each, replicas=[0])
                        for each in range(count)
                    ],
                )
            ]
        ),
        AlterPartitionReassignmentsResponse,
        _rows("responses", "partitions"),
        UNKNOWN,
    ),
    "WriteTxnMarkers of what does not exist": Cost(
        1,
        50_000,
        lambda count: markers.WriteTxnMarkersRequest(
            markers=[
                markers.WritableTxnMarker(
                    producer_id=7,
                    topics=[
                        markers.WritableTxnMarkerTopic(name="missing", partition_indexes=list(range(count)))
                    ],
                )
            ]
        ),
        WriteTxnMarkersResponse,
        lambda answer: [row.error_code for row in answer.markers[0].topics[0].partitions],
        UNKNOWN,
    ),
}


@pytest.mark.parametrize("name", list(COSTS))
def test_the_loop_is_never_held(cluster: Cluster, name: str) -> None:
    cost = COSTS[name]
    request = cost.make(cost.things)
    with connect(cluster) as wire, turns_of(cluster) as turns:
        answer = wire.ask(request, cost.version, cost.response)
    rows = cost.rows(answer)
    assert len(rows) == cost.things
    if cost.error >= 0:
        assert set(rows) == {cost.error}
    assert turns.longest_ms < LONGEST_MS


def test_a_request_of_more_elements_than_one_may_list_is_refused(cluster: Cluster) -> None:
    body = struct.pack(">i", 1 << 19) + b"\0\1x" * (1 << 19)
    with connect(cluster) as wire, turns_of(cluster) as turns:
        wire.send_body(3, 0, body)
        with pytest.raises((EOFError, ConnectionError)):
            wire.receive_frame()
    assert turns.longest_ms < LONGEST_MS


EMPTY_RECORDS = 300_000


def _many_empty_records() -> bytes:
    """In a few kilobytes: a batch whose records hold nothing, one millisecond after another."""
    body = bytearray()
    for number in range(EMPTY_RECORDS):
        fields = b"\0" + varint(number) + varint(number) + b"\1\1\0"
        body += varint(len(fields)) + fields
    packed = compress(Compression.ZSTD, bytes(body))
    header = struct.pack(
        ">qiibIhiqqqhii",
        0,
        49 + len(packed),
        0,
        2,
        0,
        4,
        EMPTY_RECORDS - 1,
        0,
        EMPTY_RECORDS - 1,
        -1,
        -1,
        -1,
        EMPTY_RECORDS,
    )
    batch = bytearray(header + packed)
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    return bytes(batch)


@pytest.mark.parametrize("timestamp", [EMPTY_RECORDS - 1, MAX_TIMESTAMP])
def test_a_time_is_looked_up_in_a_batch_of_very_many_records(cluster: Cluster, timestamp: int) -> None:
    data = produce.PartitionProduceData(index=1, records=_many_empty_records())
    topics = [produce.TopicProduceData(name=TOPIC, partition_data=[data])]
    asked = offsets.ListOffsetsPartition(partition_index=1, timestamp=timestamp)
    request = offsets.ListOffsetsRequest(
        replica_id=-1, topics=[offsets.ListOffsetsTopic(name=TOPIC, partitions=[asked])]
    )
    with connect(cluster) as wire:
        done = wire.ask(
            produce.ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics), 9, ProduceResponse
        )
        written = done.responses[0].partition_responses[0]
        assert written.error_code == 0
        with turns_of(cluster) as turns:
            answer = wire.ask(request, 7, ListOffsetsResponse)
    row = answer.topics[0].partitions[0]
    assert (row.error_code, row.timestamp) == (0, EMPTY_RECORDS - 1)
    assert row.offset == EMPTY_RECORDS - 1
    assert turns.longest_ms < LONGEST_MS


@pytest.mark.parametrize("served", [True, False])
def test_a_fetch_names_no_more_partitions_than_there_can_be(cluster: Cluster, served: bool) -> None:
    """One that is served costs the loop little; one that names far more than the broker hosts is refused."""
    count = 1_500 if served else 200_000
    rows = [fetch.FetchPartition(partition=each) for each in range(count)]
    topic = fetch.FetchTopic(topic="missing", partitions=rows)
    request = fetch.FetchRequest(max_wait_ms=0, session_epoch=-1, topics=[topic])
    with connect(cluster) as wire, turns_of(cluster) as turns:
        if served:
            answer = wire.ask(request, 12, FetchResponse)
            assert {row.error_code for row in answer.responses[0].partitions} == {UNKNOWN}
        else:
            wire.send_body(1, 12, request.to_bytes(12))
            with pytest.raises((EOFError, ConnectionError)):
                wire.receive_frame()
    assert turns.longest_ms < LONGEST_MS


def test_a_produce_names_no_more_partitions_than_there_can_be(cluster: Cluster) -> None:
    rows = [produce.PartitionProduceData(index=each, records=None) for each in range(100_000)]
    topics = [produce.TopicProduceData(name="missing", partition_data=rows)]
    body = produce.ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics).to_bytes(9)
    with connect(cluster) as wire, turns_of(cluster) as turns:
        wire.send_body(0, 9, body)
        with pytest.raises((EOFError, ConnectionError)):
            wire.receive_frame()
    assert turns.longest_ms < LONGEST_MS


def test_a_pattern_that_follows_many_ways_at_once(cluster: Cluster) -> None:
    """Names of a and b, and a pattern that has to remember the last five hundred letters."""
    names = [f"{number:0240b}".replace("0", "a").replace("1", "b") for number in range(200)]
    wanted = [create.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    beat = heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="patterns",
        member_id="m" * 22,
        rebalance_timeout_ms=300_000,
        subscribed_topic_regex="(a|b)*a(a|b){500}",
        topic_partitions=[],
    )
    with connect(cluster) as wire:
        made = wire.ask(create.CreateTopicsRequest(topics=wanted, timeout_ms=60_000), 7, CreateTopicsResponse)
        assert {topic.error_code for topic in made.topics} == {0}
        with turns_of(cluster) as turns:
            answer = wire.ask(beat, 1, ConsumerGroupHeartbeatResponse)
        assert answer.error_code == 0
        assert turns.longest_ms < LONGEST_MS
        beat.group_id, beat.subscribed_topic_regex = "others", "\\pL{20}"
        answer = wire.ask(beat, 1, ConsumerGroupHeartbeatResponse)
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

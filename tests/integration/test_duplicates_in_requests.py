"""A thing that a request mentions many times is answered once, and costs the loop what one mention costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages import (
    add_partitions_to_txn_request as add_partitions,
)
from headrace.protocol.messages import (
    alter_partition_reassignments_request as reassign,
)
from headrace.protocol.messages import (
    consumer_group_describe_request as consumer_describe,
)
from headrace.protocol.messages import (
    create_partitions_request as grow,
)
from headrace.protocol.messages import (
    create_topics_request as create,
)
from headrace.protocol.messages import (
    delete_groups_request as delete_groups,
)
from headrace.protocol.messages import (
    delete_records_request as delete_records,
)
from headrace.protocol.messages import (
    delete_topics_request as delete,
)
from headrace.protocol.messages import (
    describe_configs_request as configs,
)
from headrace.protocol.messages import (
    describe_groups_request as describe_groups,
)
from headrace.protocol.messages import (
    describe_producers_request as producers,
)
from headrace.protocol.messages import (
    describe_topic_partitions_request as describe,
)
from headrace.protocol.messages import (
    describe_transactions_request as transactions,
)
from headrace.protocol.messages import (
    elect_leaders_request as elect,
)
from headrace.protocol.messages import (
    fetch_request as fetch,
)
from headrace.protocol.messages import (
    find_coordinator_request as find,
)
from headrace.protocol.messages import (
    incremental_alter_configs_request as alter,
)
from headrace.protocol.messages import (
    leave_group_request as leave,
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
    offset_delete_request as offset_delete,
)
from headrace.protocol.messages import (
    offset_fetch_request as offset_fetch,
)
from headrace.protocol.messages import (
    offset_for_leader_epoch_request as epochs,
)
from headrace.protocol.messages import (
    produce_request as produce,
)
from headrace.protocol.messages import (
    txn_offset_commit_request as txn_commit,
)
from headrace.protocol.messages import (
    write_txn_markers_request as markers,
)
from headrace.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from headrace.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from headrace.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from headrace.protocol.messages.create_partitions_response import CreatePartitionsResponse
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.delete_groups_response import DeleteGroupsResponse
from headrace.protocol.messages.delete_records_response import DeleteRecordsResponse
from headrace.protocol.messages.delete_topics_response import DeleteTopicsResponse
from headrace.protocol.messages.describe_configs_response import DescribeConfigsResponse
from headrace.protocol.messages.describe_groups_response import DescribeGroupsResponse
from headrace.protocol.messages.describe_producers_response import DescribeProducersResponse
from headrace.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from headrace.protocol.messages.describe_transactions_response import DescribeTransactionsResponse
from headrace.protocol.messages.elect_leaders_response import ElectLeadersResponse
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.offset_delete_response import OffsetDeleteResponse
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse
from headrace.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from headrace.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.cluster import Cluster
from tests.wire import Wire

TOPIC = "orders"
OFTEN = 300
#: Mentions of the same thing: enough to see, not so many that a test takes long.
TWICE = ErrorCode.INVALID_REQUEST


class Case(NamedTuple):
    version: int
    request: Message
    response: type[Message]
    rows: Callable[[Any], Sequence[tuple[object, int]]]
    """What is answered, and with which error."""
    expected: Sequence[tuple[object, int]]


def _rows(outer: str, inner: str, name: str, index: str, code: str = "error_code") -> Callable[[Any], Any]:
    return lambda answer: [
        ((getattr(topic, name), getattr(row, index)), getattr(row, code))
        for topic in getattr(answer, outer)
        for row in getattr(topic, inner)
    ]


def _named(outer: str, name: str, code: str = "error_code") -> Callable[[Any], Any]:
    return lambda answer: [(getattr(row, name), getattr(row, code)) for row in getattr(answer, outer)]


def _topics(made: Callable[[], Any]) -> list[Any]:
    """Half of the mentions by the topic, half within it: `made` makes a topic with two partitions 0."""
    return [made() for _ in range(OFTEN // 2)]


_ONE = [((TOPIC, 0), 0)]
UNKNOWN_MEMBER = int(ErrorCode.UNKNOWN_MEMBER_ID)

CASES: dict[str, Case] = {
    "Metadata": Case(
        12,
        metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=TOPIC) for _ in range(OFTEN)]),
        MetadataResponse,
        _named("topics", "name"),
        [(TOPIC, 0)],
    ),
    "ListOffsets": Case(
        7,
        offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=_topics(
                lambda: offsets.ListOffsetsTopic(
                    name=TOPIC,
                    partitions=[offsets.ListOffsetsPartition(partition_index=0, timestamp=-1) for _ in "ab"],
                )
            ),
        ),
        ListOffsetsResponse,
        _rows("topics", "partitions", "name", "partition_index"),
        [((TOPIC, 0), TWICE)],
    ),
    "DescribeConfigs": Case(
        4,
        configs.DescribeConfigsRequest(
            resources=[
                configs.DescribeConfigsResource(
                    resource_type=2, resource_name=TOPIC, configuration_keys=["retention.ms"]
                )
                for _ in range(OFTEN)
            ]
        ),
        DescribeConfigsResponse,
        lambda answer: [
            ((row.resource_name, tuple(entry.name for entry in row.configs)), row.error_code)
            for row in answer.results
        ],
        [((TOPIC, ("retention.ms",)), 0)],
    ),
    "OffsetCommit": Case(
        9,
        commit.OffsetCommitRequest(
            group_id="g",
            topics=_topics(
                lambda: commit.OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=n)
                        for n in (1, 2)
                    ],
                )
            ),
        ),
        OffsetCommitResponse,
        _rows("topics", "partitions", "name", "partition_index"),
        _ONE,
    ),
    "OffsetFetch of groups": Case(
        9,
        offset_fetch.OffsetFetchRequest(
            groups=[
                offset_fetch.OffsetFetchRequestGroup(
                    group_id="g",
                    topics=[offset_fetch.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0, 0])],
                )
                for _ in range(OFTEN)
            ]
        ),
        OffsetFetchResponse,
        lambda answer: [
            ((group.group_id, topic.name, row.partition_index), row.error_code)
            for group in answer.groups
            for topic in group.topics
            for row in topic.partitions
        ],
        [(("g", TOPIC, 0), 0)],
    ),
    "OffsetFetch of one group": Case(
        7,
        offset_fetch.OffsetFetchRequest(
            group_id="g",
            topics=_topics(
                lambda: offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0, 0])
            ),
        ),
        OffsetFetchResponse,
        _rows("topics", "partitions", "name", "partition_index"),
        _ONE,
    ),
    "FindCoordinator": Case(
        4,
        find.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"] * OFTEN),
        FindCoordinatorResponse,
        _named("coordinators", "key"),
        [("g", 0)],
    ),
    "DescribeGroups": Case(
        5,
        describe_groups.DescribeGroupsRequest(groups=["g"] * OFTEN),
        DescribeGroupsResponse,
        _named("groups", "group_id"),
        [("g", 0)],
    ),
    "ConsumerGroupDescribe": Case(
        0,
        consumer_describe.ConsumerGroupDescribeRequest(group_ids=["nobody"] * OFTEN),
        ConsumerGroupDescribeResponse,
        _named("groups", "group_id"),
        [("nobody", ErrorCode.GROUP_ID_NOT_FOUND)],
    ),
    "DeleteGroups": Case(
        2,
        delete_groups.DeleteGroupsRequest(groups_names=["nobody"] * OFTEN),
        DeleteGroupsResponse,
        _named("results", "group_id"),
        [("nobody", ErrorCode.GROUP_ID_NOT_FOUND)],
    ),
    "LeaveGroup": Case(
        5,
        leave.LeaveGroupRequest(
            group_id="g", members=[leave.MemberIdentity(member_id="m") for _ in range(OFTEN)]
        ),
        LeaveGroupResponse,
        _named("members", "member_id"),
        [("m", UNKNOWN_MEMBER)],
    ),
    "OffsetDelete": Case(
        0,
        offset_delete.OffsetDeleteRequest(
            group_id="g",
            topics=_topics(
                lambda: offset_delete.OffsetDeleteRequestTopic(
                    name=TOPIC,
                    partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=1) for _ in "ab"],
                )
            ),
        ),
        OffsetDeleteResponse,
        _rows("topics", "partitions", "name", "partition_index"),
        [((TOPIC, 1), 0)],
    ),
    "CreateTopics": Case(
        7,
        create.CreateTopicsRequest(
            topics=[
                create.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
                for _ in range(OFTEN)
            ]
        ),
        CreateTopicsResponse,
        _named("topics", "name"),
        [("new", TWICE)],
    ),
    "DeleteTopics": Case(
        5,
        delete.DeleteTopicsRequest(topic_names=[TOPIC] * OFTEN),
        DeleteTopicsResponse,
        _named("responses", "name"),
        [(TOPIC, TWICE)],
    ),
    "DeleteTopics by name or id": Case(
        6,
        delete.DeleteTopicsRequest(topics=[delete.DeleteTopicState(name=TOPIC) for _ in range(OFTEN)]),
        DeleteTopicsResponse,
        _named("responses", "name"),
        [(TOPIC, TWICE)],
    ),
    "CreatePartitions": Case(
        3,
        grow.CreatePartitionsRequest(
            topics=[grow.CreatePartitionsTopic(name=TOPIC, count=9, assignments=None) for _ in range(OFTEN)]
        ),
        CreatePartitionsResponse,
        _named("results", "name"),
        [(TOPIC, TWICE)],
    ),
    "IncrementalAlterConfigs": Case(
        1,
        alter.IncrementalAlterConfigsRequest(
            resources=[alter.AlterConfigsResource(resource_type=2, resource_name=TOPIC) for _ in range(OFTEN)]
        ),
        IncrementalAlterConfigsResponse,
        _named("responses", "resource_name"),
        [(TOPIC, TWICE)],
    ),
    "DeleteRecords": Case(
        2,
        delete_records.DeleteRecordsRequest(
            topics=_topics(
                lambda: delete_records.DeleteRecordsTopic(
                    name=TOPIC,
                    partitions=[
                        delete_records.DeleteRecordsPartition(partition_index=0, offset=0) for _ in "ab"
                    ],
                )
            ),
            timeout_ms=10_000,
        ),
        DeleteRecordsResponse,
        _rows("topics", "partitions", "name", "partition_index"),
        _ONE,
    ),
    "OffsetForLeaderEpoch": Case(
        4,
        epochs.OffsetForLeaderEpochRequest(
            topics=_topics(
                lambda: epochs.OffsetForLeaderTopic(
                    topic=TOPIC,
                    partitions=[epochs.OffsetForLeaderPartition(partition=0, leader_epoch=0) for _ in "ab"],
                )
            )
        ),
        OffsetForLeaderEpochResponse,
        _rows("topics", "partitions", "topic", "partition"),
        _ONE,
    ),
    "DescribeProducers": Case(
        0,
        producers.DescribeProducersRequest(
            topics=_topics(lambda: producers.TopicRequest(name=TOPIC, partition_indexes=[0, 0]))
        ),
        DescribeProducersResponse,
        _rows("topics", "partitions", "name", "partition_index"),
        _ONE,
    ),
    "DescribeTopicPartitions": Case(
        0,
        describe.DescribeTopicPartitionsRequest(
            topics=[describe.TopicRequest(name=TOPIC) for _ in range(OFTEN)], response_partition_limit=2000
        ),
        DescribeTopicPartitionsResponse,
        _named("topics", "name"),
        [(TOPIC, 0)],
    ),
    "DescribeTransactions": Case(
        0,
        transactions.DescribeTransactionsRequest(transactional_ids=["nothing"] * OFTEN),
        DescribeTransactionsResponse,
        _named("transaction_states", "transactional_id"),
        [("nothing", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)],
    ),
    "AddPartitionsToTxn": Case(
        3,
        add_partitions.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="nothing",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=_topics(
                lambda: add_partitions.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0, 0])
            ),
        ),
        AddPartitionsToTxnResponse,
        _rows(
            "results_by_topic_v3_and_below",
            "results_by_partition",
            "name",
            "partition_index",
            "partition_error_code",
        ),
        [((TOPIC, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING)],
    ),
    "TxnOffsetCommit": Case(
        3,
        txn_commit.TxnOffsetCommitRequest(
            transactional_id="nothing",
            group_id="g",
            topics=_topics(
                lambda: txn_commit.TxnOffsetCommitRequestTopic(
                    name="missing",
                    partitions=[
                        txn_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
                        for _ in "ab"
                    ],
                )
            ),
        ),
        TxnOffsetCommitResponse,
        _rows("topics", "partitions", "name", "partition_index"),
        [(("missing", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
    ),
    "ElectLeaders": Case(
        2,
        elect.ElectLeadersRequest(
            election_type=0,
            topic_partitions=_topics(lambda: elect.TopicPartitions(topic=TOPIC, partitions=[0, 0])),
        ),
        ElectLeadersResponse,
        _rows("replica_election_results", "partition_result", "topic", "partition_id"),
        [((TOPIC, 0), ErrorCode.ELECTION_NOT_NEEDED)],
    ),
    "AlterPartitionReassignments": Case(
        0,
        reassign.AlterPartitionReassignmentsRequest(
            topics=_topics(
                lambda: reassign.ReassignableTopic(
                    name=TOPIC,
                    partitions=[
                        reassign.ReassignablePartition(partition_index=0, replicas=None) for _ in "ab"
                    ],
                )
            )
        ),
        AlterPartitionReassignmentsResponse,
        _rows("responses", "partitions", "name", "partition_index"),
        [((TOPIC, 0), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)],
    ),
    "WriteTxnMarkers": Case(
        1,
        markers.WriteTxnMarkersRequest(
            markers=[
                markers.WritableTxnMarker(
                    producer_id=7,
                    topics=[markers.WritableTxnMarkerTopic(name="missing", partition_indexes=[0, 0])],
                )
                for _ in range(OFTEN)
            ]
        ),
        WriteTxnMarkersResponse,
        lambda answer: [
            ((marker.producer_id, topic.name, row.partition_index), row.error_code)
            for marker in answer.markers
            for topic in marker.topics
            for row in topic.partitions
        ],
        [((7, "missing", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
    ),
    "Fetch": Case(
        12,
        fetch.FetchRequest(
            max_wait_ms=0,
            session_epoch=-1,
            topics=_topics(
                lambda: fetch.FetchTopic(
                    topic=TOPIC, partitions=[fetch.FetchPartition(partition=0) for _ in "ab"]
                )
            ),
        ),
        FetchResponse,
        _rows("responses", "partitions", "topic", "partition_index"),
        _ONE,
    ),
}


def connect(cluster: Cluster) -> Wire:
    return Wire(int(cluster.bootstrap.rpartition(":")[2]))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        with connect(cluster) as wire:
            topics = [create.CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)]
            wire.ask(create.CreateTopicsRequest(topics=topics), 7, CreateTopicsResponse)
            wire.ask(
                find.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4, FindCoordinatorResponse
            )
            wire.ask(
                find.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4, FindCoordinatorResponse
            )
            one = CASES["OffsetCommit"]
            while any(code for _, code in one.rows(wire.ask(one.request, one.version, one.response))):
                pass  # the coordinator is being loaded
        yield cluster


@pytest.mark.parametrize("api", list(CASES))
def test_each_thing_is_answered_once(cluster: Cluster, api: str) -> None:
    case = CASES[api]
    with connect(cluster) as wire:
        assert case.rows(wire.ask(case.request, case.version, case.response)) == case.expected


def test_the_last_mention_counts(cluster: Cluster) -> None:
    request = CASES["OffsetFetch of one group"]
    with connect(cluster) as wire:
        answer = wire.ask(request.request, request.version, request.response)
    assert answer.topics[0].partitions[0].committed_offset == 2


def test_a_producer_may_name_a_partition_once(cluster: Cluster) -> None:
    """Which of the batches is meant cannot be told: none is written, and there is one refusal."""
    batch = bytes(encode_batch([NewRecord(value=b"v", timestamp=1)]))
    mentions = [produce.PartitionProduceData(index=1, records=batch) for _ in range(OFTEN)]
    topics = [produce.TopicProduceData(name=TOPIC, partition_data=mentions)]
    request = produce.ProduceRequest(acks=1, timeout_ms=10_000, topic_data=topics)
    with connect(cluster) as wire:
        answer = wire.ask(request, 9, ProduceResponse)
        rows = _rows("responses", "partition_responses", "name", "index")
        assert rows(answer) == [((TOPIC, 1), ErrorCode.INVALID_RECORD)]
        asked = offsets.ListOffsetsPartition(partition_index=1, timestamp=-1)
        topic = offsets.ListOffsetsTopic(name=TOPIC, partitions=[asked])
        end = wire.ask(offsets.ListOffsetsRequest(replica_id=-1, topics=[topic]), 7, ListOffsetsResponse)
        assert end.topics[0].partitions[0].offset == 0

"""For each API the valid requests that make a laden broker look at all that it holds.

tests/hostile/stuffed.py fills requests with names, which mostly do not exist. What is dear is often short:
"everything", asked of a broker that has a lot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headrace.protocol.message import Message
from headrace.protocol.messages import add_partitions_to_txn_request as add_partitions
from headrace.protocol.messages import alter_configs_request as alter
from headrace.protocol.messages import alter_partition_reassignments_request as reassign
from headrace.protocol.messages import consumer_group_describe_request as describe_consumers
from headrace.protocol.messages import consumer_group_heartbeat_request as beat
from headrace.protocol.messages import create_partitions_request as more_partitions
from headrace.protocol.messages import create_topics_request as create
from headrace.protocol.messages import delete_groups_request as delete_groups
from headrace.protocol.messages import delete_records_request as delete_records
from headrace.protocol.messages import delete_topics_request as delete_topics
from headrace.protocol.messages import describe_configs_request as configs
from headrace.protocol.messages import describe_groups_request as describe_groups
from headrace.protocol.messages import describe_log_dirs_request as log_dirs
from headrace.protocol.messages import describe_producers_request as producers
from headrace.protocol.messages import describe_topic_partitions_request as topic_partitions
from headrace.protocol.messages import describe_transactions_request as describe_transactions
from headrace.protocol.messages import elect_leaders_request as elect
from headrace.protocol.messages import end_txn_request as end_txn
from headrace.protocol.messages import fetch_request as fetch
from headrace.protocol.messages import incremental_alter_configs_request as increment
from headrace.protocol.messages import join_group_request as join
from headrace.protocol.messages import list_groups_request as list_groups
from headrace.protocol.messages import list_offsets_request as list_offsets
from headrace.protocol.messages import list_partition_reassignments_request as list_reassignments
from headrace.protocol.messages import list_transactions_request as list_transactions
from headrace.protocol.messages import metadata_request as metadata
from headrace.protocol.messages import offset_delete_request as offset_delete
from headrace.protocol.messages import offset_fetch_request as offset_fetch
from headrace.protocol.messages import offset_for_leader_epoch_request as leader_epoch
from headrace.protocol.messages import produce_request as produce
from headrace.protocol.messages import txn_offset_commit_request as txn_commit
from headrace.protocol.messages import write_txn_markers_request as markers
from headrace.protocol.records import NewRecord, encode_batch
from tests.hostile.laden import (
    GROUP,
    GROUPS,
    INDEXES,
    PARTITIONS,
    SMALL,
    TRANSACTION,
    TRANSACTIONS,
    WIDE,
    Laden,
    commit_of,
)


class Dear(NamedTuple):
    name: str
    version: int
    make: Callable[[Laden], Message]


BATCH: Final = bytes(encode_batch([NewRecord(b"k", b"v", 1)]))
_TOPIC: Final = 2
_GROUP_NAMES: Final = [f"group-{number}" for number in range(GROUPS)]


def _fetch(of: Laden, session_epoch: int, wait_ms: int) -> Message:
    rows = [fetch.FetchPartition(partition=index, partition_max_bytes=1000) for index in INDEXES]
    topics = [fetch.FetchTopic(topic_id=of.topic_id, partitions=rows)]
    return fetch.FetchRequest(max_wait_ms=wait_ms, min_bytes=1, session_epoch=session_epoch, topics=topics)


def _produce(of: Laden) -> Message:
    rows = [produce.PartitionProduceData(index=index, records=BATCH) for index in INDEXES]
    topic = produce.TopicProduceData(topic_id=of.topic_id, name=WIDE, partition_data=rows)
    return produce.ProduceRequest(acks=1, timeout_ms=9000, topic_data=[topic])


def _configs(of: type[Any], config: type[Any]) -> list[Any]:
    settings = [config(name="retention.ms", value="1000000")]
    return [of(resource_type=_TOPIC, resource_name=name, configs=settings) for name in SMALL]


def _of_group(topic: type[Any], row: type[Any]) -> list[Any]:
    rows = [row(partition_index=index) for index in INDEXES]
    return [topic(name=WIDE, partitions=rows)]


def _list_offsets(timestamp: int) -> Message:
    rows = [
        list_offsets.ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in INDEXES
    ]
    topic = list_offsets.ListOffsetsTopic(name=WIDE, partitions=rows)
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic])


def _offset_fetch(topics: list[offset_fetch.OffsetFetchRequestTopics] | None) -> Message:
    group = offset_fetch.OffsetFetchRequestGroup(group_id=GROUP, member_id=None, topics=topics)
    return offset_fetch.OffsetFetchRequest(groups=[group])


def _join(_: Laden) -> Message:
    protocols = [
        join.JoinGroupRequestProtocol(name=f"p{each}", metadata=b"\0" * 20) for each in range(20_000)
    ]
    return join.JoinGroupRequest(
        group_id="joined",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=protocols,
    )


def _beat(group: str, names: list[str] | None, pattern: str | None = None) -> Message:
    return beat.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m" * 22,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=names,
        subscribed_topic_regex=pattern,
        topic_partitions=[],
    )


def _add_partitions(of: Laden) -> Message:
    return add_partitions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=of.producer_id,
        v3_and_below_producer_epoch=of.producer_epoch,
        v3_and_below_topics=[add_partitions.AddPartitionsToTxnTopic(name=WIDE, partitions=INDEXES)],
    )


def _txn_commit(of: Laden) -> Message:
    rows = [
        txn_commit.TxnOffsetCommitRequestPartition(partition_index=index, committed_metadata="")
        for index in INDEXES
    ]
    return txn_commit.TxnOffsetCommitRequest(
        transactional_id=TRANSACTION,
        group_id=GROUP,
        producer_id=of.producer_id,
        producer_epoch=of.producer_epoch,
        topics=[txn_commit.TxnOffsetCommitRequestTopic(name=WIDE, partitions=rows)],
    )


def _end(of: Laden) -> Message:
    return end_txn.EndTxnRequest(
        transactional_id=TRANSACTION,
        producer_id=of.producer_id,
        producer_epoch=of.producer_epoch,
        committed=True,
    )


def _reassign(_: Laden) -> Message:
    rows = [reassign.ReassignablePartition(partition_index=index, replicas=[1]) for index in INDEXES]
    return reassign.AlterPartitionReassignmentsRequest(
        topics=[reassign.ReassignableTopic(name=WIDE, partitions=rows)], timeout_ms=60_000
    )


def _create(topics: int, partitions: int) -> Message:
    names = [f"new-{topics}-{each}" for each in range(topics)]
    made = [
        create.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
    ]
    return create.CreateTopicsRequest(topics=made, timeout_ms=60_000)


def _markers(_: Laden) -> Message:
    topic = markers.WritableTxnMarkerTopic(name=WIDE, partition_indexes=INDEXES)
    return markers.WriteTxnMarkersRequest(markers=[markers.WritableTxnMarker(producer_id=7, topics=[topic])])


def _leader_epochs(_: Laden) -> Message:
    rows = [leader_epoch.OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in INDEXES]
    topic = leader_epoch.OffsetForLeaderTopic(topic=WIDE, partitions=rows)
    return leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])


DEAR: Final = (
    Dear("Fetch of everything", 17, lambda of: _fetch(of, -1, 0)),
    Dear("Fetch of everything, in a session", 17, lambda of: _fetch(of, 0, 0)),
    Dear("Fetch of everything, waiting", 17, lambda of: _fetch(of, -1, 500)),
    Dear("Produce to everything", 11, _produce),
    Dear("Fetch of everything, with records", 17, lambda of: _fetch(of, -1, 0)),
    Dear("Metadata of everything", 12, lambda _: metadata.MetadataRequest(topics=None)),
    Dear(
        "Metadata of one topic",
        12,
        lambda _: metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=WIDE)]),
    ),
    Dear("DescribeLogDirs of everything", 4, lambda _: log_dirs.DescribeLogDirsRequest(topics=None)),
    Dear("OffsetFetch of everything", 9, lambda _: _offset_fetch(None)),
    Dear(
        "OffsetFetch of one topic",
        9,
        lambda _: _offset_fetch(
            [offset_fetch.OffsetFetchRequestTopics(name=WIDE, partition_indexes=INDEXES)]
        ),
    ),
    Dear(
        "OffsetFetch of everything, one group",
        7,
        lambda _: offset_fetch.OffsetFetchRequest(group_id=GROUP, topics=None, groups=[]),
    ),
    Dear("OffsetCommit of everything", 9, lambda _: commit_of(GROUP, INDEXES)),
    Dear(
        "ElectLeaders of everything",
        2,
        lambda _: elect.ElectLeadersRequest(topic_partitions=None, timeout_ms=60_000),
    ),
    Dear("AddPartitionsToTxn of everything", 3, _add_partitions),
    Dear("TxnOffsetCommit of everything", 3, _txn_commit),
    Dear("EndTxn of everything", 3, _end),
    Dear("ListOffsets of everything, by time", 7, lambda _: _list_offsets(1)),
    Dear("ListOffsets of everything, the latest", 7, lambda _: _list_offsets(-1)),
    Dear("ListGroups", 5, lambda _: list_groups.ListGroupsRequest()),
    Dear("ListTransactions", 1, lambda _: list_transactions.ListTransactionsRequest()),
    Dear(
        "DescribeGroups of everything",
        5,
        lambda _: describe_groups.DescribeGroupsRequest(groups=_GROUP_NAMES),
    ),
    Dear(
        "ConsumerGroupDescribe of everything",
        1,
        lambda _: describe_consumers.ConsumerGroupDescribeRequest(group_ids=_GROUP_NAMES),
    ),
    Dear(
        "DescribeTransactions of everything",
        0,
        lambda _: describe_transactions.DescribeTransactionsRequest(
            transactional_ids=[f"transaction-{each}" for each in range(TRANSACTIONS)]
        ),
    ),
    Dear(
        "DescribeTopicPartitions of everything",
        0,
        lambda _: topic_partitions.DescribeTopicPartitionsRequest(response_partition_limit=100_000),
    ),
    Dear(
        "DescribeProducers of everything",
        0,
        lambda _: producers.DescribeProducersRequest(
            topics=[producers.TopicRequest(name=WIDE, partition_indexes=INDEXES)]
        ),
    ),
    Dear(
        "DescribeConfigs of everything",
        4,
        lambda _: configs.DescribeConfigsRequest(
            resources=[
                configs.DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=name, configuration_keys=None
                )
                for name in (*SMALL, WIDE)
            ],
            include_synonyms=True,
            include_documentation=True,
        ),
    ),
    Dear("OffsetForLeaderEpoch of everything", 4, _leader_epochs),
    Dear("WriteTxnMarkers of everything", 1, _markers),
    Dear(
        "ListPartitionReassignments of everything",
        0,
        lambda _: list_reassignments.ListPartitionReassignmentsRequest(topics=None),
    ),
    Dear("AlterPartitionReassignments of everything", 0, _reassign),
    Dear(
        "AlterConfigs of many topics",
        2,
        lambda _: alter.AlterConfigsRequest(
            resources=_configs(alter.AlterConfigsResource, alter.AlterableConfig)
        ),
    ),
    Dear(
        "IncrementalAlterConfigs of many topics",
        1,
        lambda _: increment.IncrementalAlterConfigsRequest(
            resources=_configs(increment.AlterConfigsResource, increment.AlterableConfig)
        ),
    ),
    Dear(
        "IncrementalAlterConfigs of all brokers",
        1,
        lambda _: increment.IncrementalAlterConfigsRequest(
            resources=[
                increment.AlterConfigsResource(
                    resource_type=4,
                    resource_name="",
                    configs=[increment.AlterableConfig(name="log.retention.ms", value="1000000")],
                )
            ]
        ),
    ),
    Dear("JoinGroup with many protocols", 9, _join),
    Dear("ConsumerGroupHeartbeat, subscribed to everything", 1, lambda _: _beat("all", [WIDE, *SMALL])),
    Dear("ConsumerGroupHeartbeat, all that a pattern matches", 1, lambda _: _beat("matching", None, ".*")),
    Dear(
        "ConsumerGroupHeartbeat, subscribed to what does not exist",
        1,
        lambda _: _beat("none", [f"missing-{each}" for each in range(100_000)]),
    ),
    Dear(
        "DeleteRecords of everything",
        2,
        lambda _: delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=WIDE,
                    partitions=[
                        delete_records.DeleteRecordsPartition(partition_index=index, offset=1)
                        for index in INDEXES
                    ],
                )
            ],
            timeout_ms=60_000,
        ),
    ),
    Dear(
        "OffsetDelete of everything",
        0,
        lambda _: offset_delete.OffsetDeleteRequest(
            group_id=GROUP,
            topics=_of_group(
                offset_delete.OffsetDeleteRequestTopic, offset_delete.OffsetDeleteRequestPartition
            ),
        ),
    ),
    Dear("OffsetCommit of everything, again", 9, lambda _: commit_of(GROUP, INDEXES)),
    Dear(
        "DeleteGroups of one with many offsets",
        2,
        lambda _: delete_groups.DeleteGroupsRequest(groups_names=[GROUP]),
    ),
    Dear(
        "DeleteGroups of everything",
        2,
        lambda _: delete_groups.DeleteGroupsRequest(groups_names=_GROUP_NAMES),
    ),
    Dear("CreateTopics, one of many partitions", 7, lambda _: _create(1, 1_000)),
    Dear("CreateTopics, many", 7, lambda _: _create(1_000, 1)),
    Dear(
        "CreatePartitions, many",
        3,
        lambda _: more_partitions.CreatePartitionsRequest(
            topics=[
                more_partitions.CreatePartitionsTopic(name=WIDE, count=PARTITIONS + 1_000, assignments=None)
            ],
            timeout_ms=60_000,
        ),
    ),
    Dear(
        "DeleteTopics, many",
        5,
        lambda _: delete_topics.DeleteTopicsRequest(topic_names=SMALL, timeout_ms=60_000),
    ),
    Dear(
        "DeleteTopics, one of many partitions",
        5,
        lambda _: delete_topics.DeleteTopicsRequest(topic_names=[WIDE], timeout_ms=60_000),
    ),
)

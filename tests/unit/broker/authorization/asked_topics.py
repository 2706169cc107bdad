"""Questions about topics, their configs and their records."""

from __future__ import annotations

from typing import Any

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.messages import (
    alter_configs_request,
    create_partitions_request,
    create_topics_request,
    delete_records_request,
    delete_topics_request,
    describe_configs_request,
    describe_producers_request,
    describe_topic_partitions_request,
    incremental_alter_configs_request,
    list_offsets_request,
    metadata_request,
    offset_for_leader_epoch_request,
)
from tests.unit.broker.authorization.questions import (
    Codes,
    Question,
    T,
    by_name,
    by_partition,
    by_resource,
)


def _metadata(_version: int, *names: str) -> list[Message]:
    topics = [metadata_request.MetadataRequestTopic(name=name) for name in names]
    return [metadata_request.MetadataRequest(topics=topics, allow_auto_topic_creation=False)]


def _metadata_creating(_version: int, *names: str) -> list[Message]:
    return [
        metadata_request.MetadataRequest(topics=[metadata_request.MetadataRequestTopic(name=name)])
        for name in names
    ]


def _create_topics(_version: int, *names: str) -> list[Message]:
    topics = [
        create_topics_request.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in names
    ]
    return [create_topics_request.CreateTopicsRequest(topics=topics, validate_only=True)]


def _delete_topics(version: int, *names: str) -> list[Message]:
    if version < 6:
        return [delete_topics_request.DeleteTopicsRequest(topic_names=[*names])]
    return [
        delete_topics_request.DeleteTopicsRequest(
            topics=[delete_topics_request.DeleteTopicState(name=name) for name in names]
        )
    ]


def _create_partitions(_version: int, *names: str) -> list[Message]:
    topics = [
        create_partitions_request.CreatePartitionsTopic(name=name, count=3, assignments=None)
        for name in names
    ]
    return [create_partitions_request.CreatePartitionsRequest(topics=topics, validate_only=True)]


def _delete_records(_version: int, *names: str) -> list[Message]:
    part = delete_records_request.DeleteRecordsPartition(partition_index=0, offset=0)
    topics = [delete_records_request.DeleteRecordsTopic(name=name, partitions=[part]) for name in names]
    return [delete_records_request.DeleteRecordsRequest(topics=topics, timeout_ms=1000)]


def _list_offsets(_version: int, *names: str) -> list[Message]:
    part = list_offsets_request.ListOffsetsPartition(timestamp=-1)
    topics = [list_offsets_request.ListOffsetsTopic(name=name, partitions=[part]) for name in names]
    return [list_offsets_request.ListOffsetsRequest(replica_id=-1, topics=topics)]


def _epochs(_version: int, *names: str) -> list[Message]:
    part = offset_for_leader_epoch_request.OffsetForLeaderPartition()
    topics = [
        offset_for_leader_epoch_request.OffsetForLeaderTopic(topic=name, partitions=[part]) for name in names
    ]
    return [offset_for_leader_epoch_request.OffsetForLeaderEpochRequest(topics=topics)]


def _producers(_version: int, *names: str) -> list[Message]:
    topics = [describe_producers_request.TopicRequest(name=name, partition_indexes=[0]) for name in names]
    return [describe_producers_request.DescribeProducersRequest(topics=topics)]


def _pages(_version: int, *names: str) -> list[Message]:
    topics = [describe_topic_partitions_request.TopicRequest(name=name) for name in names]
    return [describe_topic_partitions_request.DescribeTopicPartitionsRequest(topics=topics)]


def _describe_configs(kind: int) -> Any:
    def make(_version: int, *names: str) -> list[Message]:
        resources = [
            describe_configs_request.DescribeConfigsResource(
                resource_type=kind, resource_name="" if kind == 4 else name, configuration_keys=None
            )
            for name in names
        ]
        return [describe_configs_request.DescribeConfigsRequest(resources=resources)]

    return make


def _alter_configs(module: Any, request: str, kind: int) -> Any:
    def make(_version: int, *names: str) -> list[Message]:
        resources = [
            module.AlterConfigsResource(resource_type=kind, resource_name="" if kind == 4 else name)
            for name in names
        ]
        message: Message = getattr(module, request)(resources=resources, validate_only=True)
        return [message]

    return make


def _topics(_request: Any, response: Any) -> Codes:
    return by_name(T, response.topics)


def _configs_told(_request: Any, response: Any) -> Codes:
    return by_name(T, response.topics, code="topic_config_error_code")


KINDS = ((2, "of topics"), (32, "of groups"), (4, "of brokers"))

QUESTIONS = (
    Question(ApiKey.METADATA, "", _metadata, _topics),
    Question(
        ApiKey.METADATA,
        "all topics",
        lambda version, *_: [metadata_request.MetadataRequest(topics=[] if version == 0 else None)],
        _topics,
    ),
    Question(ApiKey.METADATA, "creating", _metadata_creating, _topics, "made-", also=("",)),
    Question(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "", _pages, _topics),
    Question(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        "all topics",
        lambda *_: [describe_topic_partitions_request.DescribeTopicPartitionsRequest()],
        _topics,
    ),
    Question(ApiKey.CREATE_TOPICS, "", _create_topics, _topics, "new-"),
    Question(
        ApiKey.CREATE_TOPICS,
        "configs in the answer",
        _create_topics,
        _configs_told,
        "new-",
        also=("",),
        versions=range(5, 8),
    ),
    Question(
        ApiKey.DELETE_TOPICS,
        "",
        _delete_topics,
        lambda _, response: by_name(T, response.responses),
        "doomed-",
    ),
    Question(
        ApiKey.CREATE_PARTITIONS, "", _create_partitions, lambda _, response: by_name(T, response.results)
    ),
    Question(ApiKey.DELETE_RECORDS, "", _delete_records, lambda _, made: by_partition(T, made.topics)),
    Question(ApiKey.LIST_OFFSETS, "", _list_offsets, lambda _, made: by_partition(T, made.topics)),
    Question(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, "", _epochs, lambda _, made: by_partition(T, made.topics, "topic")
    ),
    Question(ApiKey.DESCRIBE_PRODUCERS, "", _producers, lambda _, made: by_partition(T, made.topics)),
    *(
        Question(
            ApiKey.DESCRIBE_CONFIGS,
            case,
            _describe_configs(kind),
            lambda _, response: by_resource(response.results),
        )
        for kind, case in KINDS
    ),
    *(
        Question(
            api, case, _alter_configs(module, request, kind), lambda _, made: by_resource(made.responses)
        )
        for api, module, request in (
            (ApiKey.ALTER_CONFIGS, alter_configs_request, "AlterConfigsRequest"),
            (
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                incremental_alter_configs_request,
                "IncrementalAlterConfigsRequest",
            ),
        )
        for kind, case in KINDS
    ),
)

"""Administration: each function is one question or one change. Refused is raised where the broker refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.client.refusals import refusal
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_partitions_response import CreatePartitionsResponse
from headrace.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.messages.delete_records_response import DeleteRecordsResponse
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest
from headrace.protocol.messages.delete_topics_response import DeleteTopicsResponse
from headrace.protocol.messages.metadata_response import MetadataResponseTopic

_NAMED_DELETE_AT_MOST: Final = 5  # from 6 on topics may be named by id, in another field


class PartitionState(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int]


class TopicState(NamedTuple):
    name: str
    topic_id: UUID
    internal: bool
    partitions: list[PartitionState]

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


class BrokerState(NamedTuple):
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool


async def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> tuple[int, int]:
    """(partitions, replication factor) of the new topic; -1 asks for the broker's defaults."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replication_factor,
                configs=[
                    CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
                ],
            )
        ],
        timeout_ms=_timeout_ms(cluster),
        validate_only=validate_only,
    )

    async def attempt() -> tuple[int, int]:
        reply = await cluster.ask_controller(request, CreateTopicsResponse)
        (result,) = reply.topics
        if result.error_code:
            raise refusal(result.error_code, f"topic {name}", result.error_message)
        cluster.forget(name)
        return result.num_partitions, result.replication_factor

    return await cluster.retried(attempt)


async def delete_topics(cluster: Cluster, names: Sequence[str]) -> None:
    """Raises for the first that is refused; the others are deleted all the same."""
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=_timeout_ms(cluster))

    async def attempt() -> None:
        reply = await cluster.ask_controller(request, DeleteTopicsResponse, at_most=_NAMED_DELETE_AT_MOST)
        for result in reply.responses:
            if result.error_code:
                raise refusal(result.error_code, f"topic {result.name}", result.error_message)
            if result.name is not None:
                cluster.forget(result.name)

    await cluster.retried(attempt)


async def add_partitions(cluster: Cluster, name: str, total: int) -> None:
    """Make `total` partitions of the topic; there can only be more than before."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=total, assignments=None)],
        timeout_ms=_timeout_ms(cluster),
    )

    async def attempt() -> None:
        reply = await cluster.ask_controller(request, CreatePartitionsResponse)
        for result in reply.results:
            if result.error_code:
                raise refusal(result.error_code, f"topic {name}", result.error_message)
        cluster.forget(name)

    await cluster.retried(attempt)


async def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Forget everything before an offset, -1 for all there is; the new first offset of each partition."""
    done: dict[TopicPartition, int] = {}

    async def attempt() -> None:
        groups = await cluster.by_leader(partition for partition in before if partition not in done)
        for broker_id, partitions in groups.items():
            topics: dict[str, list[DeleteRecordsPartition]] = {}
            for partition in partitions:
                topics.setdefault(partition.topic, []).append(
                    DeleteRecordsPartition(partition_index=partition.partition, offset=before[partition])
                )
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name, partitions=items) for name, items in topics.items()],
                timeout_ms=_timeout_ms(cluster),
            )
            reply = await cluster.ask_broker(broker_id, request, DeleteRecordsResponse)
            for topic in reply.topics:
                for result in topic.partitions:
                    partition = TopicPartition(topic.name, result.partition_index)
                    if result.error_code:
                        raise refusal(result.error_code, f"partition {partition}")
                    done[partition] = result.low_watermark

    await cluster.retried(attempt)
    return done


async def list_topics(cluster: Cluster, *, internal: bool = False) -> list[TopicState]:
    reply = await cluster.metadata(None)
    topics = [_topic_state(topic) for topic in reply.topics if not topic.error_code]
    return sorted(topic for topic in topics if internal or not topic.internal)


async def describe_topics(cluster: Cluster, names: Sequence[str]) -> list[TopicState]:
    """In the order of the names."""
    reply = await cluster.metadata(names)
    found = {topic.name: topic for topic in reply.topics}
    states = []
    for name in names:
        topic = found.get(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
        if topic is None or code:
            raise refusal(code, f"topic {name}")
        states.append(_topic_state(topic))
    return states


async def list_brokers(cluster: Cluster) -> list[BrokerState]:
    reply = await cluster.metadata([])
    return sorted(
        BrokerState(node.node_id, node.host, node.port, node.rack, node.node_id == reply.controller_id)
        for node in reply.brokers
    )


def _topic_state(topic: MetadataResponseTopic) -> TopicState:
    partitions = sorted(
        PartitionState(
            entry.partition_index,
            entry.leader_id,
            entry.leader_epoch,
            entry.replica_nodes,
            entry.isr_nodes,
            entry.offline_replicas,
        )
        for entry in topic.partitions
    )
    return TopicState(topic.name or "", topic.topic_id, topic.is_internal, partitions)


def _timeout_ms(cluster: Cluster) -> int:
    return int(cluster.request_timeout * 1000)

"""Administration: each function is one question or one change. Refused is raised where the broker refuses.

A change returns when all brokers tell of it, so that whoever comes next may ask any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from headrace.client.agreement import until_all_agree
from headrace.client.cluster import Cluster
from headrace.client.refusals import refusal
from headrace.core.ids import TopicPartition
from headrace.protocol.api_keys import ApiKey
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
from headrace.protocol.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headrace.protocol.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from headrace.protocol.messages.metadata_response import MetadataResponseTopic

_NAMED_DELETE_AT_MOST: Final = 5  # from 6 on topics may be named by id, in another field


class PartitionState(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int]
    eligible: Sequence[int] = ()
    """Replicas outside the ISR that may lead all the same, because they hold all that is committed."""


class TopicState(NamedTuple):
    name: str
    topic_id: UUID
    internal: bool
    partitions: list[PartitionState]

    @property
    def replication_factor(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


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
        timeout_ms=cluster.request_timeout_ms,
        validate_only=validate_only,
    )

    async def attempt() -> tuple[int, int]:
        reply = await cluster.ask_controller(request, CreateTopicsResponse)
        (result,) = reply.topics
        if result.error_code:
            raise refusal(result.error_code, f"topic {name}", result.error_message)
        cluster.forget(name)
        return result.num_partitions, result.replication_factor

    made = await cluster.retried(attempt)
    if not validate_only:
        await until_all_agree(cluster, [name], made=True)
    return made


async def delete_topics(cluster: Cluster, names: Sequence[str]) -> None:
    """Raises for the first that is refused; the others are deleted all the same."""
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=cluster.request_timeout_ms)

    async def attempt() -> None:
        reply = await cluster.ask_controller(request, DeleteTopicsResponse, at_most=_NAMED_DELETE_AT_MOST)
        for result in reply.responses:
            if result.error_code:
                raise refusal(result.error_code, f"topic {result.name}", result.error_message)
            if result.name is not None:
                cluster.forget(result.name)

    await cluster.retried(attempt)
    await until_all_agree(cluster, names)


async def add_partitions(cluster: Cluster, name: str, total: int) -> None:
    """Make `total` partitions of the topic; there can only be more than before."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=total, assignments=None)],
        timeout_ms=cluster.request_timeout_ms,
    )

    async def attempt() -> None:
        reply = await cluster.ask_controller(request, CreatePartitionsResponse)
        for result in reply.results:
            if result.error_code:
                raise refusal(result.error_code, f"topic {name}", result.error_message)
        cluster.forget(name)

    await cluster.retried(attempt)
    await until_all_agree(cluster, [name])


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
                timeout_ms=cluster.request_timeout_ms,
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
    # A broker that is starting hangs up on whoever comes too early.
    reply = await cluster.retried(cluster.metadata)
    topics = [_topic_state(topic) for topic in reply.topics if not topic.error_code]
    return sorted(topic for topic in topics if internal or not topic.internal)


async def describe_topics(cluster: Cluster, names: Sequence[str]) -> list[TopicState]:
    """In the order of the names, with eligible leaders where the broker tells of them."""
    return await cluster.retried(lambda: _describe_topics(cluster, names))


async def _describe_topics(cluster: Cluster, names: Sequence[str]) -> list[TopicState]:
    if not (await cluster.any_broker()).supports(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        reply = await cluster.metadata(names)
        return _in_order(
            names, {topic.name or "": (topic.error_code, _topic_state(topic)) for topic in reply.topics}
        )
    found: dict[str, tuple[int, TopicState]] = {}
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in sorted(names)])
    while True:
        page = await cluster.ask_any(request, DescribeTopicPartitionsResponse)
        for topic in page.topics:
            # A topic that is longer than a page goes on in the next one.
            _, state = found.setdefault(topic.name or "", (topic.error_code, _described(topic, [])))
            state.partitions.extend(_described(topic, topic.partitions).partitions)
        if page.next_cursor is None:
            return _in_order(names, found)
        request.cursor = Cursor(
            topic_name=page.next_cursor.topic_name, partition_index=page.next_cursor.partition_index
        )


def _in_order(names: Sequence[str], found: Mapping[str, tuple[int, TopicState]]) -> list[TopicState]:
    states = []
    for name in names:
        code, state = found.get(name, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None))
        if code or state is None:
            raise refusal(code, f"topic {name}")
        states.append(state)
    return states


def _described(
    topic: DescribeTopicPartitionsResponseTopic,
    partitions: Sequence[DescribeTopicPartitionsResponsePartition],
) -> TopicState:
    states = [
        PartitionState(
            entry.partition_index,
            entry.leader_id,
            entry.leader_epoch,
            entry.replica_nodes,
            entry.isr_nodes,
            entry.offline_replicas,
            entry.eligible_leader_replicas or (),
        )
        for entry in partitions
    ]
    return TopicState(topic.name or "", topic.topic_id, topic.is_internal, states)


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

"""The topics that there are, and what brokers tell of their partitions.

Apart from `admin`, which changes them: a command that only asks loads fewer messages, and starts sooner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.client.refusals import refusal
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
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

"""Moving replicas: ask for it, look how far it is, call it off; hand leaderships back; forget a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.grouping import by_topic
from headrace.client.refusals import refusal
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from headrace.protocol.messages.elect_leaders_response import ElectLeadersResponse
from headrace.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from headrace.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from headrace.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from headrace.protocol.messages.unregister_broker_response import UnregisterBrokerResponse


class Election(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class Reassignment(NamedTuple):
    """One that is in progress. `replicas` are those of now: the old ones and those that are added."""

    replicas: Sequence[int]
    adding: Sequence[int]
    removing: Sequence[int]


async def reassign(
    cluster: Cluster, targets: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, str]:
    """Ask for these replicas, or with None call off what is in progress. Gives the refused ones and why."""
    topics: dict[str, list[ReassignablePartition]] = {}
    for partition, replicas in targets.items():
        topics.setdefault(partition.topic, []).append(
            ReassignablePartition(
                partition_index=partition.partition, replicas=None if replicas is None else list(replicas)
            )
        )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=cluster.request_timeout_ms,
        topics=[ReassignableTopic(name=name, partitions=items) for name, items in topics.items()],
    )

    async def attempt() -> dict[TopicPartition, str]:
        reply = await cluster.ask_controller(request, AlterPartitionReassignmentsResponse)
        if reply.error_code:
            raise refusal(reply.error_code, "the reassignment", reply.error_message)
        return {
            TopicPartition(topic.name, result.partition_index): str(
                refusal(
                    result.error_code,
                    f"partition {topic.name}-{result.partition_index}",
                    result.error_message,
                )
            )
            for topic in reply.responses
            for result in topic.partitions
            if result.error_code
        }

    return await cluster.retried(attempt)


async def list_reassignments(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """What is in progress, of these partitions or of all."""
    topics = None if partitions is None else by_topic(partitions)
    request = ListPartitionReassignmentsRequest(
        timeout_ms=cluster.request_timeout_ms,
        topics=None
        if topics is None
        else [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ],
    )

    async def attempt() -> dict[TopicPartition, Reassignment]:
        reply = await cluster.ask_controller(request, ListPartitionReassignmentsResponse)
        if reply.error_code:
            raise refusal(reply.error_code, "the reassignments", reply.error_message)
        return {
            TopicPartition(topic.name, entry.partition_index): Reassignment(
                entry.replicas, entry.adding_replicas, entry.removing_replicas
            )
            for topic in reply.topics
            for entry in topic.partitions
        }

    return await cluster.retried(attempt)


async def elect_leaders(
    cluster: Cluster, kind: Election, partitions: Iterable[TopicPartition] | None = None
) -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
    """(those with a new leader, those that were refused and why). None asks for every partition.

    A partition that needs no election is in neither.
    """
    topics = None if partitions is None else by_topic(partitions)
    request = ElectLeadersRequest(
        election_type=int(kind),
        topic_partitions=None
        if topics is None
        else [TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics.items()],
        timeout_ms=cluster.request_timeout_ms,
    )

    async def attempt() -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
        reply = await cluster.ask_controller(request, ElectLeadersResponse)
        if reply.error_code:
            raise refusal(reply.error_code, "the election", None)
        elected, refused = [], {}
        for topic in reply.replica_election_results:
            for result in topic.partition_result:
                partition = TopicPartition(topic.topic, result.partition_id)
                if not result.error_code:
                    elected.append(partition)
                elif result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                    refused[partition] = str(
                        refusal(result.error_code, f"partition {partition}", result.error_message)
                    )
        cluster.forget()
        return elected, refused

    return await cluster.retried(attempt)


async def unregister_broker(cluster: Cluster, broker_id: int) -> None:
    """Forget a broker that has stopped for good."""
    request = UnregisterBrokerRequest(broker_id=broker_id)

    async def attempt() -> None:
        reply = await cluster.ask_controller(request, UnregisterBrokerResponse)
        if reply.error_code:
            raise refusal(reply.error_code, f"broker {broker_id}", reply.error_message)

    await cluster.retried(attempt)

"""Administration: each function is one change of topics. Refused is raised where the broker refuses.

A change returns when all brokers tell of it, so that whoever comes next may ask any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.client.agreement import until_all_agree
from headrace.client.cluster import Cluster
from headrace.client.refusals import refusal
from headrace.core.ids import TopicPartition
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

_NAMED_DELETE_AT_MOST: Final = 5  # from 6 on topics may be named by id, in another field


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

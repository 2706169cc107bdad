"""Where a partition begins, where it ends, and what was first written after a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.errors import LogOffline
from headrace.client.refusals import refusal_of_leader
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse

EARLIEST: Final = -2
LATEST: Final = -1
MAX_TIMESTAMP: Final = -3
LIST_OFFSETS_AT_MOST: Final = 11
_STORE_TIMEOUT_MS: Final = 20_000
"""How long the broker may look into an object store."""
_CONSUMER: Final = -1
COMPARING_REPLICAS: Final = -2  # who compares replicas, and may see what no consumer sees yet


class FoundOffset(NamedTuple):
    """`offset` is -1 where no record is as young as the time that was asked for."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    log_end: bool = False,
) -> dict[TopicPartition, FoundOffset]:
    """For each partition the offset at a time in milliseconds, or at EARLIEST, LATEST, MAX_TIMESTAMP.

    With `log_end`, LATEST is the end of the leader's log, also above what is committed.
    """
    found: dict[TopicPartition, FoundOffset] = {}

    async def ask_the_rest() -> None:
        groups = await cluster.by_leader(partition for partition in wanted if partition not in found)
        for broker_id, partitions in groups.items():
            request = ListOffsetsRequest(
                replica_id=COMPARING_REPLICAS if log_end else _CONSUMER,
                isolation_level=int(read_committed),
                topics=topics_of({partition: wanted[partition] for partition in partitions}),
                timeout_ms=_STORE_TIMEOUT_MS,
            )
            reply = await cluster.ask_broker(
                broker_id, request, ListOffsetsResponse, at_most=LIST_OFFSETS_AT_MOST
            )
            for topic in reply.topics:
                for entry in topic.partitions:
                    partition = TopicPartition(topic.name, entry.partition_index)
                    if entry.error_code:
                        error = refusal_of_leader(entry.error_code, f"partition {partition}")
                        if cluster.is_offline(partition):
                            raise LogOffline(error.code, str(error), error.hint)
                        raise error
                    found[partition] = FoundOffset(entry.offset, entry.timestamp, entry.leader_epoch)

    await cluster.retried(ask_the_rest)
    return found


def topics_of(wanted: Mapping[TopicPartition, int]) -> list[ListOffsetsTopic]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for (name, index), time in wanted.items():
        topics.setdefault(name, []).append(ListOffsetsPartition(partition_index=index, timestamp=time))
    return [ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]


async def partitions_of(cluster: Cluster, topic: str) -> list[TopicPartition]:
    entry = await cluster.retried(lambda: cluster.topic(topic))
    return sorted(TopicPartition(topic, partition.partition_index) for partition in entry.partitions)


async def ends_of(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """(first offset, next offset) of each partition."""
    wanted = list(partitions)
    first = await list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    last = await list_offsets(cluster, dict.fromkeys(wanted, LATEST))
    return {partition: (first[partition].offset, last[partition].offset) for partition in wanted}

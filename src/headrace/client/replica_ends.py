"""How far each replica of a partition reaches, as its broker says: for partitions that nobody leads, before
one of them is made the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.client import offsets
from headrace.client.admin import TopicState
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.core.ids import NO_BROKER, TopicPartition
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse


class LogEnd(NamedTuple):
    """Ordered as an unclean election orders them."""

    epoch: int
    """Of the last record."""
    offset: int


Ends = Mapping[int, LogEnd | None]
"""By broker, in the order of the assignment; None: it is down, or cannot use its files."""


async def ends_of_leaderless(cluster: Cluster, topics: Sequence[TopicState]) -> dict[TopicPartition, Ends]:
    wanted = {
        TopicPartition(topic.name, state.partition): state.replicas
        for topic in topics
        for state in topic.partitions
        if state.leader == NO_BROKER
    }
    brokers = sorted({broker_id for replicas in wanted.values() for broker_id in replicas})
    found = await asyncio.gather(
        *(_ask(cluster, each, [name for name, held in wanted.items() if each in held]) for each in brokers)
    )
    known = dict(zip(brokers, found, strict=True))
    return {
        name: {broker_id: known[broker_id].get(name) for broker_id in replicas}
        for name, replicas in wanted.items()
    }


async def _ask(
    cluster: Cluster, broker_id: int, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, LogEnd]:
    request = ListOffsetsRequest(
        replica_id=offsets.COMPARING_REPLICAS,
        topics=offsets.topics_of(dict.fromkeys(partitions, offsets.LATEST)),
    )
    try:
        async with asyncio.timeout(cluster.connect_timeout):
            reply = await cluster.ask_broker(
                broker_id, request, ListOffsetsResponse, at_most=offsets.LIST_OFFSETS_AT_MOST
            )
    except (ClientFailure, TimeoutError):
        return {}
    return {
        TopicPartition(topic.name, each.partition_index): LogEnd(each.leader_epoch, each.offset)
        for topic in reply.topics
        for each in topic.partitions
        if not each.error_code
    }

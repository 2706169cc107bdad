"""How far each replica of a partition reaches, as its broker says: for partitions that nobody leads, before
one of them is made the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.client import offsets
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.topics import TopicState
from headrace.core.ids import NO_BROKER, TopicPartition
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse


class LogEnd(NamedTuple):
    """Ordered as an unclean election orders them."""

    epoch: int
    """Of the last record."""
    offset: int

    def __str__(self) -> str:
        return f"epoch {self.epoch}, offset {self.offset}"


class Replica(NamedTuple):
    end: LogEnd | None
    """None: its broker does not know it."""
    error_code: int = 0
    """Why it cannot lead."""

    @property
    def is_quarantined(self) -> bool:
        """It was served until it was found damaged. Files that cannot be used at all have no end."""
        return bool(self.error_code) and self.end is not None


Replicas = Mapping[int, Replica | None]
"""By broker, in the order of the assignment; None: the broker does not answer."""


def would_lead(replicas: Replicas) -> int | None:
    """As the controller chooses: the last epoch first, then the end, then the order of the assignment."""
    usable = {
        broker_id: each.end
        for broker_id, each in replicas.items()
        if each is not None and not each.error_code and each.end is not None
    }
    return max(usable, key=usable.__getitem__, default=None)


def worth_a_restart(replicas: Replicas) -> list[int]:
    """Live brokers with a quarantined log that goes further than that of whoever would lead."""
    chosen = would_lead(replicas)
    leader = None if chosen is None else replicas[chosen]
    return [
        broker_id
        for broker_id, each in replicas.items()
        if each is not None
        and each.is_quarantined
        and (leader is None or leader.end is None or (each.end is not None and each.end > leader.end))
    ]


async def ends_of_leaderless(
    cluster: Cluster, topics: Sequence[TopicState]
) -> dict[TopicPartition, Replicas]:
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
) -> dict[TopicPartition, Replica]:
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
        TopicPartition(topic.name, each.partition_index): Replica(
            LogEnd(each.leader_epoch, each.offset) if each.offset >= 0 else None, each.error_code
        )
        for topic in reply.topics
        for each in topic.partitions
    }

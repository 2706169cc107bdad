"""The rate at which replicas that move may be copied, so that they do not crowd out the clients.

Kafka's four settings: a rate for each broker on either side, and for each topic which replicas it holds for.
At the leader's side it holds for the replicas that send, at the follower's for those that are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client import configs, health
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType
from headrace.client.errors import Refused
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class Move(NamedTuple):
    """From these replicas to those; the first of each leads by preference."""

    before: Sequence[int]
    after: Sequence[int]

    @property
    def adding(self) -> list[int]:
        return [broker_id for broker_id in self.after if broker_id not in self.before]

    @property
    def removing(self) -> list[int]:
        return [broker_id for broker_id in self.before if broker_id not in self.after]


def throttled_replicas(moves: Mapping[TopicPartition, Move]) -> dict[str, dict[str, str]]:
    """The two settings of each topic that has data to copy."""
    sending: dict[str, list[str]] = {}
    adding: dict[str, list[str]] = {}
    for partition, move in moves.items():
        if move.adding:
            sending.setdefault(partition.topic, []).extend(f"{partition.partition}:{b}" for b in move.before)
            adding.setdefault(partition.topic, []).extend(f"{partition.partition}:{b}" for b in move.adding)
    return {
        topic: dict(zip(REPLICAS, (",".join(sending[topic]), ",".join(adding[topic])), strict=True))
        for topic in sending
    }


async def throttle(cluster: Cluster, moves: Mapping[TopicPartition, Move], bytes_per_second: int) -> None:
    """Before the moves begin: they must never run without the limit."""
    brokers = dict.fromkeys(
        broker_id for move in moves.values() if move.adding for broker_id in (*move.before, *move.adding)
    )
    await _set_rates(cluster, brokers, str(bytes_per_second))
    for topic, settings in throttled_replicas(moves).items():
        await configs.alter_configs(cluster, Resource(ResourceType.TOPIC, topic), settings)


async def unthrottle(cluster: Cluster, topics: Iterable[str], brokers: Iterable[int]) -> None:
    """Take every throttle of these topics and brokers away, whoever set it."""
    for topic in dict.fromkeys(topics):
        try:
            await configs.alter_configs(cluster, Resource(ResourceType.TOPIC, topic), dict.fromkeys(REPLICAS))
        except Refused as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # deleted while it moved
                raise
    await _set_rates(cluster, brokers, None)


async def _set_rates(cluster: Cluster, brokers: Iterable[int], rate: str | None) -> None:
    """A broker that is down copies nothing, and could not be asked."""
    wanted = set(brokers)
    for broker in (await health.describe_cluster(cluster)).brokers:
        if broker.alive and broker.broker_id in wanted:
            resource = Resource(ResourceType.BROKER, str(broker.broker_id))
            await configs.alter_configs(cluster, resource, dict.fromkeys(RATES, rate))

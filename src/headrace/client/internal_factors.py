"""How many replicas the internal topics should have, where they may have fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.client import configs
from headrace.client.cluster import Cluster
from headrace.client.topics import TopicState

PROPERTIES: Final = {
    "__consumer_offsets": "offsets.topic.replication.factor",
    "__transaction_state": "transaction.state.log.replication.factor",
}


async def ask_factors(cluster: Cluster, topics: Sequence[TopicState], alive: Sequence[int]) -> dict[str, int]:
    """By topic, as one broker is configured. Nobody is asked while every topic is on every broker."""
    doubtful = {
        topic.name: PROPERTIES[topic.name]
        for topic in topics
        if topic.name in PROPERTIES and fewest_replicas(topic) < len(alive)
    }
    if not doubtful:
        return {}
    resource = configs.Resource(configs.ResourceType.BROKER, str(alive[0]))
    entries = await configs.describe_configs(cluster, resource)
    told = {entry.name: entry.value for entry in entries}
    return {name: int(value) for name, key in doubtful.items() if (value := told.get(key))}


def fewest_replicas(topic: TopicState) -> int:
    return min((len(state.replicas) for state in topic.partitions), default=0)

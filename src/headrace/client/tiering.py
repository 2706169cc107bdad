"""How far the history of topics is in the object store, as the leaders of their partitions tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.client import configs
from headrace.client.cluster import Cluster
from headrace.client.offsets import EARLIEST, LATEST, list_offsets, partitions_of
from headrace.client.topics import list_topics
from headrace.core.ids import TopicPartition

ENABLE: Final = "remote.storage.enable"
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5


class PartitionTier(NamedTuple):
    log_start: int
    local_start: int
    """What lies before it is in the store only."""
    tiered_end: int
    """The first offset that is not in the store; the log start if nothing is there."""
    end: int

    @property
    def only_remote(self) -> int:
        return max(0, self.local_start - self.log_start)

    @property
    def only_local(self) -> int:
        """Records that are not in the store: those of the active segment, and what is being copied."""
        return self.end - max(self.tiered_end, self.log_start)


async def tiered_topics(cluster: Cluster, among: Sequence[str] = ()) -> list[str]:
    """The topics that keep their history in the store; of `among`, or of all."""
    names = list(among) or [state.name for state in await list_topics(cluster)]
    resources = [configs.Resource(configs.ResourceType.TOPIC, name) for name in names]
    found = await configs.describe_many(cluster, resources, [ENABLE])
    return sorted(
        resource.name
        for resource, entries in found.items()
        if any(entry.name == ENABLE and entry.value == "true" for entry in entries)
    )


def tier_of(log_start: int, local_start: int, latest_tiered: int, end: int) -> PartitionTier:
    """From the answers to EARLIEST, EARLIEST_LOCAL, LATEST_TIERED and LATEST."""
    return PartitionTier(log_start, local_start, max(latest_tiered + 1, log_start), end)


async def describe_tiers(cluster: Cluster, topics: Sequence[str]) -> dict[TopicPartition, PartitionTier]:
    partitions = [each for topic in topics for each in await partitions_of(cluster, topic)]
    asked = {
        time: await list_offsets(cluster, dict.fromkeys(partitions, time))
        for time in (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, LATEST)
    }
    return {each: tier_of(*(found[each].offset for found in asked.values())) for each in partitions}

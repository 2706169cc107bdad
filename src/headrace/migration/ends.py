"""Both ends of a migration: two clusters that are those of the plan, and what both say of its partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headrace.client import health, links
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.offsets import LATEST, list_offsets
from headrace.core.ids import TopicPartition
from headrace.migration.state import Migration
from headrace.protocol.error_codes import ErrorCode


class Both(NamedTuple):
    source: Cluster
    target: Cluster


async def check_clusters(both: Both, migration: Migration) -> None:
    """Addresses move, and a file outlives what it speaks of. Nothing is done to another cluster."""
    for name, cluster, wanted in (
        ("source", both.source, migration.source.cluster_id),
        ("target", both.target, migration.target.cluster_id),
    ):
        found = (await health.describe_cluster(cluster)).cluster_id
        if found != wanted:
            raise ClientFailure(
                f"the {name} that answers is cluster {found}, the plan is for {wanted}",
                "look at the addresses; another pair of clusters is another plan",
            )


async def check_topics(source: Cluster, migration: Migration) -> None:
    """A topic that was made anew is another log, whatever its name."""
    reply = await source.retried(lambda: source.metadata(list(migration.topics)))
    for topic in reply.topics:
        name = topic.name or ""
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ClientFailure(
                f"topic {name} is no longer at the source",
                "`headrace link promote` keeps what was copied; `headrace migrate link --undo` drops it",
            )
        if not topic.error_code and str(topic.topic_id) != migration.topics[name].topic_id:
            raise ClientFailure(
                f"topic {name} was deleted at the source and made anew since the plan: it is another log",
                "`headrace migrate link --undo` takes the copies away; then plan anew",
            )


async def partitions(cluster: Cluster, names: Iterable[str]) -> list[TopicPartition]:
    """Fresh: partitions may have been added."""
    reply = await cluster.retried(lambda: cluster.metadata(list(names)))
    return sorted(
        TopicPartition(topic.name or "", each.partition_index)
        for topic in reply.topics
        if not topic.error_code
        for each in topic.partitions
    )


async def ends(cluster: Cluster, names: Iterable[str]) -> dict[TopicPartition, int]:
    """Up to where each partition is committed."""
    wanted = dict.fromkeys(await partitions(cluster, names), LATEST)
    return {name: found.offset for name, found in (await list_offsets(cluster, wanted)).items()}


async def views(both: Both, migration: Migration) -> list[links.LinkView]:
    return [await links.describe(both.target, name) for name in migration.topics]

"""A fork of a topic: created with a word of what it is a fork of, made by the leaders of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.client import many_topics
from headrace.client.admin import create_topic
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.offsets import partitions_of
from headrace.client.start import Start, StartKind, resolve_starts
from headrace.client.throttles import REPLICAS
from headrace.client.tiering import ENABLE, PartitionTier, describe_tiers
from headrace.client.topics import describe_topics
from headrace.config.tiering import FORK, ForkPoint, fork_text
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode

_NOT_OF_FORKS = frozenset((*REPLICAS, "headrace.balance.moved.replicas"))
"""Settings that belong to moves of the origin's replicas."""


class ForkedTopic(NamedTuple):
    name: str
    offsets: Sequence[int]
    """Of each partition: where it goes on by itself."""


async def fork_topic(
    cluster: Cluster, origin: str, name: str, at: Start, settings: Mapping[str, str]
) -> ForkedTopic:
    (state,) = await describe_topics(cluster, [origin])
    theirs = await _settings(cluster, origin)
    if theirs.get(ENABLE) != "true":
        raise ClientFailure(
            f"{origin} has no history in an object store",
            f"set {ENABLE}=true, and wait for its first segment",
        )
    tiers = await describe_tiers(cluster, [origin])
    wanted = await _wanted(cluster, origin, at, tiers)
    offsets = [_checked(each, wanted[each], tiers[each], at) for each in sorted(wanted)]
    configs = {key: value for key, value in theirs.items() if key not in _NOT_OF_FORKS and value is not None}
    configs |= {**settings, FORK: fork_text(ForkPoint(state.topic_id, tuple(offsets)))}
    await create_topic(
        cluster,
        name,
        partitions=len(offsets),
        replication_factor=state.replication_factor,
        configs=configs,
    )
    return ForkedTopic(name, offsets)


async def _settings(cluster: Cluster, origin: str) -> dict[str, str]:
    try:
        return (await many_topics.topic_settings(cluster, [origin])).get(origin, {})
    except Refused as error:
        if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        raise Refused(
            error.code,
            f"a fork takes over the settings of {origin}, and this user may not see them",
            "give it DESCRIBE_CONFIGS on that topic, beside READ",
        ) from None


async def _wanted(
    cluster: Cluster, origin: str, at: Start, tiers: Mapping[TopicPartition, PartitionTier]
) -> dict[TopicPartition, int]:
    partitions = await partitions_of(cluster, origin)
    if at.kind is StartKind.LATEST:
        return {each: tiers[each].tiered_end for each in partitions}
    return await resolve_starts(cluster, partitions, at)


def _checked(partition: TopicPartition, offset: int, tier: PartitionTier, at: Start) -> int:
    """A place that the store does not reach yet is refused, and not silently an earlier one."""
    if offset > tier.tiered_end:
        raise ClientFailure(
            f"{partition} is in the store up to offset {tier.tiered_end}, and not up to {offset}",
            "wait until the segment is sealed and copied (segment.ms, segment.bytes), or fork it --at latest",
        )
    if offset < tier.log_start:
        if at.kind is StartKind.OFFSET:
            raise ClientFailure(f"{partition} begins at offset {tier.log_start}, after {offset}")
        return tier.log_start
    return offset

"""Whose log goes furthest, of partitions that nobody leads: asked before an unclean election.

Kafka elects the first replica that is alive. It may be an empty one, and all others would cut off what they
have. The last epoch counts first, then the end: the same order in which a follower compares its log.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from headrace.broker.cluster.log_ends import Key, LogEnd, log_ends, own_log_ends
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.core.ids import NO_BROKER

Ends = dict[int, LogEnd]
"""Of the replicas of a partition that have answered, in the order of the assignment."""


async def ends_of_leaderless(
    runtime: Runtime, metadata: MetadataCache, partitions: PartitionTable, asked: Iterable[Key] | None
) -> dict[Key, Ends]:
    """How far the replicas of each partition without a leader reach."""
    wanted: dict[int, list[Key]] = defaultdict(list)
    for key in _leaderless(metadata, asked):
        for broker_id in _replicas(metadata, key):
            if metadata.is_alive(broker_id):
                wanted[broker_id].append(key)
    found: dict[Key, dict[int, LogEnd]] = defaultdict(dict)
    for key, end in own_log_ends(partitions, wanted.pop(runtime.broker_id, ())).items():
        found[key][runtime.broker_id] = end
    answers = await asyncio.gather(
        *(log_ends(runtime, metadata, each, keys) for each, keys in wanted.items())
    )
    for broker_id, ends in zip(wanted, answers, strict=True):
        for key, end in ends.items():
            found[key][broker_id] = end
    return {
        key: {each: ends[each] for each in _replicas(metadata, key) if each in ends}
        for key, ends in found.items()
    }


def longest_first(ends: Ends) -> list[int]:
    """The order of the assignment decides between equals, as ever."""
    return sorted(ends, key=ends.__getitem__, reverse=True)


def _leaderless(metadata: MetadataCache, asked: Iterable[Key] | None) -> list[Key]:
    image = metadata.image
    if asked is None:
        return [
            (name, index)
            for name, topic in image.topics_by_name.items()
            for index in topic.leaderless_partitions()
        ]
    return [
        (name, index)
        for name, index in dict.fromkeys(asked)
        if (topic := image.topic(name)) is not None and index in topic and topic.leader(index) == NO_BROKER
    ]


def _replicas(metadata: MetadataCache, key: Key) -> tuple[int, ...]:
    topic = metadata.image.topic(key[0])
    return () if topic is None or key[1] not in topic else topic.replicas(key[1])

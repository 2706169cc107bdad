"""What moves of replicas have to copy: for a plan, before anybody has asked for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.log_dirs import replica_files
from headrace.client.throttles import Move
from headrace.core.ids import TopicPartition


class Volume(NamedTuple):
    partitions: int
    copies: int
    copied_bytes: int
    most_bytes: int
    """That one broker takes, or that one broker gives, whichever is more."""

    def least_seconds(self, bytes_per_second: int) -> float:
        """At a throttle, which holds for each broker and each direction."""
        return self.most_bytes / bytes_per_second


async def volume(cluster: Cluster, todo: Mapping[TopicPartition, Move]) -> Volume:
    """By the files of the replicas that are there. What is written meanwhile comes on top."""
    holders: dict[int, list[TopicPartition]] = {}
    for partition, move in todo.items():
        for broker_id in move.before if move.adding else ():
            holders.setdefault(broker_id, []).append(partition)
    files = await replica_files(cluster, holders)
    copies = total = 0
    taken: Counter[int] = Counter()
    given: Counter[int] = Counter()
    for partition, move in todo.items():
        found = [files[partition, each].size for each in move.before if (partition, each) in files]
        size = max(found, default=0)
        copies += len(move.adding)
        total += size * len(move.adding)
        for broker_id in move.adding:
            taken[broker_id] += size
            given[move.before[0]] += size
    return Volume(len(todo), copies, total, max((*taken.values(), *given.values()), default=0))

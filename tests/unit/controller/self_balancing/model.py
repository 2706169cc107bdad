"""Clusters that are not even, drawn or made, and what becomes of them by a plan."""

from __future__ import annotations

import random
from collections.abc import Collection

from headrace.controller.self_balancing.loads import BrokerRoom, ClusterLoad, PartitionLoad, Settings
from headrace.controller.self_balancing.planning import Plan, plan
from headrace.controller.self_balancing.slices import result_of
from headrace.core.ids import TopicPartition

DISK = 10**13


def planned(
    load: ClusterLoad, settings: Settings, *, most: int = 5, resting: Collection[TopicPartition] = ()
) -> Plan:
    return result_of(plan(load, settings, most=most, resting=resting))


def drawn(
    seed: int, *, brokers: int, partitions: int, factor: int, new: int = 1, racks: int = 0
) -> ClusterLoad:
    """Some brokers hold much more than others, some partitions are much larger, the last brokers are new."""
    source = random.Random(seed)
    old = range(brokers - new)
    weights = [0.1 + source.random() ** 2 for _ in old]
    held: dict[TopicPartition, PartitionLoad] = {}
    for number in range(partitions):
        replicas: list[int] = []
        while len(replicas) < min(factor, len(old)):
            (chosen,) = source.choices(old, weights)
            if chosen not in replicas:
                replicas.append(chosen)
        held[TopicPartition(f"topic{number // 10}", number % 10)] = PartitionLoad(
            tuple(replicas),
            int(source.lognormvariate(20, 0.8)),
            source.lognormvariate(12, 0.8),
            source.lognormvariate(12, 0.8),
        )
    rooms = {
        each: BrokerRoom(f"rack{each % racks}" if racks else None, DISK, DISK) for each in range(brokers)
    }
    return ClusterLoad(held, rooms)


def after(load: ClusterLoad, plan: Plan) -> ClusterLoad:
    """Once all of it has arrived."""
    partitions = dict(load.partitions)
    for step in plan.steps:
        assert partitions[step.partition].replicas == step.before
        partitions[step.partition] = partitions[step.partition]._replace(replicas=step.after)
    return load._replace(partitions=partitions)

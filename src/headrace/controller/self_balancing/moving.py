"""Begin and end the moves of self-balancing: what the metadata says of them changes together.

While a partition moves, its topic names the replicas that are added (`headrace.balance.moved.replicas`). By
that every broker knows which copies go by the rate of self-balancing, and the next controller which moves are
its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from headrace.controller.configs import ConfigSchema, incremental_alter_configs
from headrace.controller.image import ConfigResource, MetadataImage, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp, Reassignment, RecordGroup, Result
from headrace.controller.policy import ReplicationPolicy
from headrace.controller.reassignments import reassign_partitions
from headrace.controller.self_balancing.hindrances import degraded
from headrace.controller.self_balancing.loads import Step
from headrace.controller.self_balancing.survey import (
    MOVED_REPLICAS,
    circumstances,
    moved_replicas,
    topics_with_moves,
)
from headrace.core.ids import TopicPartition


class Begun(NamedTuple):
    steps: list[Step]
    refused: dict[TopicPartition, str]
    """Why those were not begun: the cluster has changed since they were planned."""


def begin(
    policy: ReplicationPolicy, schema: ConfigSchema, steps: Sequence[Step], excluded: Collection[int]
) -> Result[Begun]:
    """Each topic's steps succeed together. None of them if the cluster is not whole any more."""
    hindered = degraded(circumstances(policy.image, excluded))
    if hindered is not None:
        return Result([], Begun([], {each.partition: hindered for each in steps}))
    groups: list[RecordGroup] = []
    begun = Begun([], {})
    by_topic: dict[str, list[Step]] = {}
    for step in steps:
        by_topic.setdefault(step.partition.topic, []).append(step)
    for topic, wanted in by_topic.items():
        fitting = [step for step in wanted if _still_holds(policy.image, step, begun.refused)]
        asked = [Reassignment(*step.partition, step.after) for step in fitting]
        moved = reassign_partitions(policy, asked, allow_factor_change=False)
        errors = [each for each in moved.response if each.error is not None]
        for each in errors:
            begun.refused[TopicPartition(each.topic, each.partition)] = str(each.error)
        if errors or not moved.groups:
            continue
        pairs = moved_replicas(policy.image, topic)
        for step in fitting:
            if step.adding:
                pairs.setdefault(step.partition.partition, set()).update(step.adding)
        groups.append([*_named(policy.image, schema, topic, pairs), *moved.records])
        begun.steps.extend(fitting)
    return Result(groups, begun)


def _still_holds(image: MetadataImage, step: Step, refused: dict[TopicPartition, str]) -> bool:
    name, partition = step.partition
    topic = image.topic(name)
    if topic is None or partition not in topic:
        refused[step.partition] = "it was deleted"
    elif topic.replicas(partition) != step.before or topic.exceptional(partition).adding:
        refused[step.partition] = "somebody else moves it"
    else:
        return True
    return False


def end(policy: ReplicationPolicy, schema: ConfigSchema) -> Result[dict[TopicPartition, bool]]:
    """Forget the moves that have ended; those, and whether they came where they should."""
    groups: list[RecordGroup] = []
    ended: dict[TopicPartition, bool] = {}
    for name in topics_with_moves(policy.image):
        topic, pairs = policy.image.topics_by_name.get(name), moved_replicas(policy.image, name)
        if topic is None:
            continue
        over = [
            partition
            for partition in pairs
            if partition not in topic or not topic.exceptional(partition).adding
        ]
        if over:
            left = {each: brokers for each, brokers in pairs.items() if each not in over}
            groups.append(_named(policy.image, schema, name, left))
            for each in over:
                has_arrived = each in topic and pairs[each] <= set(topic.replicas(each))
                ended[TopicPartition(name, each)] = has_arrived
    return Result(groups, ended)


def cancel(policy: ReplicationPolicy, schema: ConfigSchema) -> Result[dict[TopicPartition, str]]:
    """Call off what self-balancing has begun. What cannot be called off goes on, as if an operator had begun
    it; those, and why."""
    groups: list[RecordGroup] = []
    kept: dict[TopicPartition, str] = {}
    for name in topics_with_moves(policy.image):
        topic, pairs = policy.image.topics_by_name.get(name), moved_replicas(policy.image, name)
        if topic is None:
            continue
        moving = [each for each in pairs if each in topic and topic.exceptional(each).adding]
        outcome = reassign_partitions(policy, [Reassignment(name, each, None) for each in moving])
        refused = {each.partition: str(each.error) for each in outcome.response if each.error is not None}
        kept.update({TopicPartition(name, each): why for each, why in refused.items()})
        group = [*_named(policy.image, schema, name, {}), *outcome.records]
        if group:
            groups.append(group)
    return Result(groups, kept)


def _named(
    image: MetadataImage, schema: ConfigSchema, topic: str, pairs: Mapping[int, Collection[int]]
) -> RecordGroup:
    """The records that let the topic name these and no others."""
    value = ",".join(
        f"{partition}:{broker}" for partition, brokers in sorted(pairs.items()) for broker in sorted(brokers)
    )
    change = ConfigChange(ConfigOp.SET if value else ConfigOp.DELETE, MOVED_REPLICAS, value or None)
    altered = incremental_alter_configs(
        image, [(ConfigResource(ResourceType.TOPIC, topic), [change])], schema=schema
    )
    return altered.records

"""Topics: create, delete, add partitions. Each function decides on the image and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from headrace.controller.assignments import candidates, check_manual, new_partition
from headrace.controller.configs import ConfigSchema, check_new_topic, set_topic_configs
from headrace.controller.forks import first_epochs
from headrace.controller.image import MetadataImage, collision_key
from headrace.controller.operations import (
    USE_DEFAULT,
    CreatedTopic,
    DeletedTopic,
    MorePartitions,
    NewTopic,
    PartitionsCreated,
    RecordGroup,
    Result,
    TopicDeletion,
)
from headrace.controller.placement import place
from headrace.controller.topic_names import METADATA_TOPIC, check_topic_name
from headrace.core.errors import (
    HeadraceError,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    TopicExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.core.ids import NO_TOPIC_ID
from headrace.core.ports import Random
from headrace.protocol.stored.remove_topic_record import RemoveTopicRecord
from headrace.protocol.stored.topic_record import TopicRecord

_RESERVED_IDS = frozenset({UUID(int=0), UUID(int=1)})
"""Zero means "none", one is the metadata log's own id in Kafka."""


MOST_PARTITIONS = 10_000
"""Partitions that one request may add: Kafka's own bound, and it keeps a decision short."""


class TopicDefaults(NamedTuple):
    """What holds for a topic that says nothing, as this broker's file configures it."""

    num_partitions: int = 1
    replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_elections: bool = False


def create_topics(
    image: MetadataImage,
    topics: Sequence[NewTopic],
    *,
    schema: ConfigSchema,
    defaults: TopicDefaults,
    random: Random,
) -> Result[list[CreatedTopic]]:
    if _too_many(topic_sizes(topics, defaults)):
        refusal = _too_large()
        return Result(
            [], [CreatedTopic(name, error=refusal) for name in dict.fromkeys(t.name for t in topics)]
        )
    groups: list[RecordGroup] = []
    outcomes: list[CreatedTopic] = []
    named = Counter(topic.name for topic in topics)
    taken: set[str] = set()
    for name in named:
        if named[name] > 1:
            outcomes.append(CreatedTopic(name, error=InvalidRequest(f"topic {name!r} is named twice")))
    for topic in topics:
        if named[topic.name] > 1:
            continue
        try:
            _check_name(image, topic.name, taken)
            configs = check_new_topic(schema, topic.configs)
            replicas = _plan(image, topic, defaults, random)
            epochs = first_epochs(image, configs, len(replicas))
        except HeadraceError as error:
            outcomes.append(CreatedTopic(topic.name, error=error))
            continue
        taken.add(collision_key(topic.name))
        topic_id = _new_id(image, random)
        group: RecordGroup = [TopicRecord(name=topic.name, topic_id=topic_id)]
        group.extend(set_topic_configs(topic.name, configs))
        group.extend(
            new_partition(image, topic_id, i, row, leader_epoch=epochs[i]) for i, row in enumerate(replicas)
        )
        groups.append(group)
        outcomes.append(CreatedTopic(topic.name, topic_id, len(replicas), len(replicas[0])))
    return Result(groups, outcomes)


def topic_sizes(topics: Sequence[NewTopic], defaults: TopicDefaults) -> int:
    """How many partitions a request asks for."""
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        else:
            asked = defaults.num_partitions if topic.num_partitions == USE_DEFAULT else topic.num_partitions
            total += max(0, asked)  # a wrong number must not make room for a huge one
    return total


def _too_many(partitions: int) -> bool:
    return partitions > MOST_PARTITIONS


def _too_large() -> PolicyViolation:
    return PolicyViolation(f"one request may add at most {MOST_PARTITIONS} partitions; ask in several")


def _check_name(image: MetadataImage, name: str, taken: set[str]) -> None:
    if name == METADATA_TOPIC:
        raise InvalidRequest(f"{name} is the metadata log; it exists by itself")
    check_topic_name(name)
    if name in image.topics_by_name:
        raise TopicExists(f"topic {name!r} exists already")
    other = image.name_collision(name)
    if other is not None:
        raise InvalidTopic(f"{name!r} differs from the existing topic {other!r} only by '.' and '_'")
    if collision_key(name) in taken:
        raise InvalidTopic(f"{name!r} differs from another topic of this request only by '.' and '_'")


def _plan(
    image: MetadataImage, topic: NewTopic, defaults: TopicDefaults, random: Random
) -> list[tuple[int, ...]]:
    if topic.assignments:
        return _manual(image, topic)
    partitions, factor = topic.num_partitions, topic.replication_factor
    if factor != USE_DEFAULT and factor <= 0:
        raise InvalidReplicationFactor("the replication factor is positive, or -1 for the default")
    if partitions != USE_DEFAULT and partitions <= 0:
        raise InvalidPartitions("the number of partitions is positive, or -1 for the default")
    return place(
        candidates(image),
        partitions=defaults.num_partitions if partitions == USE_DEFAULT else partitions,
        replication_factor=defaults.replication_factor if factor == USE_DEFAULT else factor,
        start=random.randrange(max(1, len(image.brokers))),
    )


def _manual(image: MetadataImage, topic: NewTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != USE_DEFAULT:
        raise InvalidRequest("with a manual assignment the replication factor must be -1")
    if topic.num_partitions != USE_DEFAULT:
        raise InvalidRequest("with a manual assignment the number of partitions must be -1")
    rows: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for partition, replicas in topic.assignments:
        if partition in rows:
            raise InvalidReplicaAssignment(f"partition {partition} is assigned twice")
        check_manual(image, partition, replicas, factor)
        factor = len(replicas)
        rows[partition] = tuple(replicas)
    if set(rows) != set(range(len(rows))):
        raise InvalidReplicaAssignment("assigned partitions must be numbered from 0 without a gap")
    return [rows[partition] for partition in range(len(rows))]


def _new_id(image: MetadataImage, random: Random) -> UUID:
    while True:
        topic_id = UUID(bytes=random.randbytes(16), version=4)
        # Kafka's tools print ids in URL-safe base64 and misread one with a leading dash.
        if (
            topic_id not in _RESERVED_IDS
            and topic_id not in image.topics_by_id
            and topic_id.bytes[0] >> 2 != 62
        ):
            return topic_id


def delete_topics(image: MetadataImage, topics: Sequence[TopicDeletion]) -> Result[list[DeletedTopic]]:
    groups: list[RecordGroup] = []
    outcomes: list[DeletedTopic] = []
    named = Counter(topics)
    targets: set[UUID] = set()
    for deletion in named:
        try:
            if named[deletion] > 1:
                raise InvalidRequest("the topic is listed twice")
            found = _find(image, deletion)
            if found.topic_id in targets:
                raise InvalidRequest("the topic is listed by its name and by its id")
        except HeadraceError as error:
            outcomes.append(DeletedTopic(deletion.name, deletion.topic_id, error))
            continue
        targets.add(found.topic_id)
        groups.append([RemoveTopicRecord(topic_id=found.topic_id)])
        outcomes.append(DeletedTopic(found.name, found.topic_id))
    return Result(groups, outcomes)


class _Found(NamedTuple):
    name: str
    topic_id: UUID


def _find(image: MetadataImage, deletion: TopicDeletion) -> _Found:
    if deletion.name is not None:
        if deletion.topic_id != NO_TOPIC_ID:
            raise InvalidRequest("a topic is deleted by its name or by its id, not by both")
        topic = image.topic(deletion.name)
        if topic is None:
            raise UnknownTopicOrPartition(f"there is no topic {deletion.name!r}")
    elif deletion.topic_id == NO_TOPIC_ID:
        raise InvalidRequest("neither a name nor an id is given")
    else:
        topic = image.topic_by_id(deletion.topic_id)
        if topic is None:
            raise UnknownTopicId(f"there is no topic with id {deletion.topic_id}")
    return _Found(topic.name, topic.topic_id)


def create_partitions(
    image: MetadataImage, topics: Sequence[MorePartitions], *, random: Random
) -> Result[list[PartitionsCreated]]:
    groups: list[RecordGroup] = []
    outcomes: list[PartitionsCreated] = []
    named = Counter(topic.name for topic in topics)
    for name in dict.fromkeys(topic.name for topic in topics if named[topic.name] > 1):
        outcomes.append(PartitionsCreated(name, InvalidRequest(f"topic {name!r} is named twice")))
    for topic in topics:
        if named[topic.name] > 1:
            continue
        try:
            groups.append(_grow(image, topic, random))
        except HeadraceError as error:
            outcomes.append(PartitionsCreated(topic.name, error))
        else:
            outcomes.append(PartitionsCreated(topic.name))
    return Result(groups, outcomes)


def _grow(image: MetadataImage, wanted: MorePartitions, random: Random) -> RecordGroup:
    topic = image.topic(wanted.name)
    if topic is None:
        raise UnknownTopicOrPartition(f"there is no topic {wanted.name!r}")
    now, added = len(topic), wanted.total - len(topic)
    if added == 0:
        raise InvalidPartitions(f"topic {wanted.name!r} has {now} partitions already")
    if added < 0:
        raise InvalidPartitions(
            f"topic {wanted.name!r} has {now} partitions; they cannot become {wanted.total}"
        )
    if _too_many(added):
        raise _too_large()
    factor = len(topic.replicas(0))
    if wanted.assignments is not None:
        if len(wanted.assignments) != added:
            raise InvalidReplicaAssignment(
                f"{added} partitions are to be added, but {len(wanted.assignments)} are assigned"
            )
        rows = [tuple(replicas) for replicas in wanted.assignments]
        for i, replicas in enumerate(rows):
            check_manual(image, now + i, replicas, factor)
    else:
        start = random.randrange(max(1, len(image.brokers)))
        rows = place(candidates(image), partitions=added, replication_factor=factor, start=start)
    return [new_partition(image, topic.topic_id, now + i, replicas) for i, replicas in enumerate(rows)]

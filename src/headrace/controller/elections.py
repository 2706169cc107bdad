"""Who leads: elections that an operator asks for, and the new epochs that a restart demands."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.controller.image import MetadataImage
from headrace.controller.operations import ElectedLeader, ElectionType, RecordGroup, Result
from headrace.controller.topic_image import TopicImage
from headrace.core.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    HeadraceError,
    InvalidRequest,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from headrace.core.ids import NO_BROKER, BrokerId
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord

RECOVERING = 1
"""Of a leader that was elected outside the ISR and the eligible leaders."""


def elect_leaders(
    image: MetadataImage, election: int, partitions: Sequence[tuple[str, int]] | None
) -> Result[list[ElectedLeader]]:
    """`partitions` None asks for all, and then those that need no election are left out of the answer."""
    if election not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        raise InvalidRequest(f"{election} is no type of election")
    groups: list[RecordGroup] = []
    outcomes: list[ElectedLeader] = []
    for name, partition in _everything(image) if partitions is None else dict.fromkeys(partitions):
        try:
            groups.append([_elect(image, election, name, partition)])
        except ElectionNotNeeded as error:
            if partitions is not None:
                outcomes.append(ElectedLeader(name, partition, error))
        except HeadraceError as error:
            outcomes.append(ElectedLeader(name, partition, error))
        else:
            outcomes.append(ElectedLeader(name, partition))
    return Result(groups, outcomes)


def _everything(image: MetadataImage) -> list[tuple[str, int]]:
    return [(name, i) for name, topic in image.topics_by_name.items() for i in range(len(topic))]


def _elect(image: MetadataImage, election: int, name: str, partition: int) -> PartitionChangeRecord:
    topic = image.topic(name)
    if topic is None or partition not in topic:
        raise UnknownTopicOrPartition(f"there is no partition {name}-{partition}")
    leader = topic.leader(partition)
    replicas = topic.replicas(partition)
    if election == ElectionType.PREFERRED:
        if leader == replicas[0]:
            raise ElectionNotNeeded(f"{name}-{partition} is led by its preferred leader {leader}")
        if not _electable(image, topic, partition, replicas[0]):
            raise PreferredLeaderNotAvailable(f"broker {replicas[0]} is not alive and in sync")
        return elected(topic.topic_id, partition, replicas[0], topic, clean=True)
    if leader != NO_BROKER:
        raise ElectionNotNeeded(f"{name}-{partition} has leader {leader}")
    for broker_id in replicas:
        if _electable(image, topic, partition, broker_id):
            return elected(topic.topic_id, partition, broker_id, topic, clean=True)
    for broker_id in replicas:
        if _alive(image, broker_id):
            return elected(topic.topic_id, partition, broker_id, topic, clean=False)
    raise EligibleLeadersNotAvailable(f"no replica of {name}-{partition} is alive")


def _alive(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.active


def _electable(image: MetadataImage, topic: TopicImage, partition: int, broker_id: int) -> bool:
    """Alive, and known to hold everything that is committed."""
    complete = broker_id in topic.isr(partition) or broker_id in topic.exceptional(partition).elr
    return complete and _alive(image, broker_id)


def elected(
    topic_id: UUID, partition: int, leader: int, topic: TopicImage, *, clean: bool
) -> PartitionChangeRecord:
    """A change of leader. The ISR is told only where the leader is not in it: LeaderInIsr."""
    change = PartitionChangeRecord(partition_id=partition, topic_id=topic_id, leader=leader)
    rare = topic.exceptional(partition)
    if leader not in topic.isr(partition):
        change.isr = [leader]
        if rare.elr:
            change.eligible_leader_replicas = []
    if not clean:
        change.leader_recovery_state = RECOVERING
    return change


def renew_leaderships(image: MetadataImage, broker_id: BrokerId) -> Result[int]:
    """A new epoch for each partition that a restarted broker led, and for leaderless ones that it may lead.

    An epoch belongs to the process that was given it, so a leadership is never resumed. The answer is
    how many there are.
    """
    groups: list[RecordGroup] = []
    for topic in image.topics_by_name.values():
        groups += [
            [PartitionChangeRecord(partition_id=partition, topic_id=topic.topic_id, leader=broker_id)]
            for partition in topic.partitions_led_by(broker_id)
        ]
        if NO_BROKER in topic.leaders:
            groups += [
                [elected(topic.topic_id, partition, broker_id, topic, clean=True)]
                for partition in range(len(topic))
                if topic.leader(partition) == NO_BROKER and _electable(image, topic, partition, broker_id)
            ]
    return Result(groups, len(groups))

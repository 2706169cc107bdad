"""Log directories: which replica is in which, and what the death of one costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from headrace.controller.fencing import fence_brokers
from headrace.controller.operations import AssignedReplica, RecordGroup, Result
from headrace.controller.partition_changes import PartitionChanges
from headrace.controller.policy import ReplicationPolicy
from headrace.controller.topic_image import TopicImage
from headrace.core.errors import HeadraceError, NotLeader, UnknownTopicId, UnknownTopicOrPartition
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.message import Message
from headrace.protocol.stored.broker_registration_change_record import BrokerRegistrationChangeRecord


def directories_offline(
    policy: ReplicationPolicy, broker_id: BrokerId, epoch: BrokerEpoch, directories: Iterable[UUID]
) -> Result[int]:
    """Replicas there lead nothing and are in sync with nothing; the answer counts the partitions changed.

    A broker whose last directory died is fenced as a whole.
    """
    broker = policy.check_incarnation(broker_id, epoch)
    given = set(directories)
    dead = [each for each in broker.directories if each in given]
    if not dead:
        return Result([], 0)
    left = [each for each in broker.directories if each not in given]
    if not left:
        return fence_brokers(policy, [broker_id])
    group: RecordGroup = [
        BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=left)
    ]
    group.extend(_lost_with(policy, broker_id, dead))
    return Result([group], len(group) - 1)


def _lost_with(policy: ReplicationPolicy, broker_id: int, dead: Sequence[UUID]) -> Iterator[Message]:
    me = frozenset({broker_id})
    for topic in policy.image.topics_by_name.values():
        changes: PartitionChanges | None = None
        for partition in topic.partitions_in_directories(dead):
            isr = topic.isr(partition)
            if broker_id not in isr:
                continue
            if changes is None:
                changes = PartitionChanges(policy, topic, unfit=me)
            record = changes.change(partition, isr=[each for each in isr if each != broker_id])
            if record is not None:
                yield record


def assign_directories(
    policy: ReplicationPolicy,
    broker_id: BrokerId,
    epoch: BrokerEpoch,
    assignments: Mapping[UUID, Sequence[tuple[UUID, int]]],
) -> Result[list[AssignedReplica]]:
    """A broker tells where its replicas are: (topic id, partition) for each directory.

    A replica in a directory that is not among the broker's has failed with it. What it held is not known any
    more, and it may begin anew with nothing: nobody may count on it.
    """
    broker = policy.check_incarnation(broker_id, epoch)
    groups: list[RecordGroup] = []
    outcomes: list[AssignedReplica] = []
    me = frozenset({broker_id})
    for directory, replicas in assignments.items():
        online = directory in broker.directories
        for topic_id, partition in dict.fromkeys(replicas):
            try:
                topic = _replica_of(policy, broker_id, topic_id, partition)
            except HeadraceError as error:
                outcomes.append(AssignedReplica(directory, topic_id, partition, error))
                continue
            isr = topic.isr(partition)
            record = PartitionChanges(policy, topic, unfit=frozenset() if online else me).change(
                partition,
                isr=None if online else [each for each in isr if each != broker_id],
                incomplete=frozenset() if online else me,
                directories={broker_id: directory},
            )
            if record is not None:
                groups.append([record])
            outcomes.append(AssignedReplica(directory, topic_id, partition))
    return Result(groups, outcomes)


def _replica_of(policy: ReplicationPolicy, broker_id: int, topic_id: UUID, partition: int) -> TopicImage:
    topic = policy.image.topic_by_id(topic_id)
    if topic is None:
        raise UnknownTopicId(f"there is no topic with id {topic_id}")
    if partition not in topic:
        raise UnknownTopicOrPartition(f"there is no partition {topic.name}-{partition}")
    if broker_id not in topic.replicas(partition):
        raise NotLeader(f"broker {broker_id} has no replica of {topic.name}-{partition}")
    return topic

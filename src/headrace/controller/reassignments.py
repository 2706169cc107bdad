"""Moving partitions between brokers (KIP-455).

A partition that moves has the replicas of both ends until all of the new ones are in sync; then those that
shall go leave in one step, with a new leader epoch. So it never has fewer copies than when it began.
Cancelling takes the new replicas away again, unless too few of the others hold the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from headrace.controller.operations import (
    OngoingReassignment,
    ReassignedPartition,
    Reassignment,
    RecordGroup,
    Result,
)
from headrace.controller.partition_changes import PartitionChanges, Replicas
from headrace.controller.policy import ReplicationPolicy
from headrace.controller.topic_image import TopicImage
from headrace.core.errors import (
    HeadraceError,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord


def reassign_partitions(
    policy: ReplicationPolicy, asked: Sequence[Reassignment], *, allow_factor_change: bool = True
) -> Result[list[ReassignedPartition]]:
    """Start, change or cancel. Each partition succeeds or fails alone."""
    groups: list[RecordGroup] = []
    outcomes: list[ReassignedPartition] = []
    named = Counter((each.topic, each.partition) for each in asked)
    for each in asked:
        try:
            topic = policy.image.topic(each.topic)
            if topic is None or each.partition not in topic:
                raise UnknownTopicOrPartition(f"there is no partition {each.topic}-{each.partition}")
            if named[each.topic, each.partition] > 1:
                raise InvalidRequest(f"partition {each.topic}-{each.partition} is listed twice")
            if each.replicas is None:
                record = _cancel(policy, topic, each.partition)
            else:
                record = _move(policy, topic, each.partition, tuple(each.replicas), allow_factor_change)
        except HeadraceError as error:
            outcomes.append(ReassignedPartition(each.topic, each.partition, error))
            continue
        if record is not None:
            groups.append([record])
        outcomes.append(ReassignedPartition(each.topic, each.partition))
    return Result(groups, outcomes)


def _place(topic: TopicImage, partition: int) -> Replicas:
    rare = topic.exceptional(partition)
    return Replicas(topic.replicas(partition), rare.adding, rare.removing)


def _move(
    policy: ReplicationPolicy,
    topic: TopicImage,
    partition: int,
    target: tuple[int, ...],
    allow_factor_change: bool,
) -> PartitionChangeRecord | None:
    _check_target(policy, topic, partition, target)
    place = _place(topic, partition)
    before = place.before
    if not allow_factor_change and len(target) != len(before):
        raise InvalidReplicationFactor(
            f"{topic.name}-{partition} has {len(before)} replicas; {len(target)} would change that"
        )
    # A replica of an earlier target that holds the data already goes with the others, at the end.
    holders = {*topic.isr(partition), *topic.exceptional(partition).elr}
    going = [each for each in place.all if each in before or each in holders]
    removing = tuple(sorted(each for each in going if each not in target))
    adding = tuple(sorted(each for each in target if each not in before))
    return PartitionChanges(policy, topic).change(
        partition, place=Replicas(target + removing, adding, removing)
    )


def _check_target(
    policy: ReplicationPolicy, topic: TopicImage, partition: int, target: tuple[int, ...]
) -> None:
    where = f"the new assignment of {topic.name}-{partition}"
    if not target:
        raise InvalidReplicaAssignment(f"{where} names no broker")
    if len(set(target)) != len(target):
        raise InvalidReplicaAssignment(f"{where} names a broker twice: {list(target)}")
    for broker_id in target:
        if broker_id not in policy.image.brokers:
            raise InvalidReplicaAssignment(f"{where} names broker {broker_id}, which is not registered")


def _cancel(policy: ReplicationPolicy, topic: TopicImage, partition: int) -> PartitionChangeRecord | None:
    place = _place(topic, partition)
    if not place.adding and not place.removing:
        raise NoReassignmentInProgress(f"{topic.name}-{partition} is not being reassigned")
    before = place.before
    isr = topic.isr(partition)
    left = [each for each in isr if each in before]
    record = PartitionChanges(policy, topic).change(partition, isr=left, place=Replicas(before))
    unclean = record is not None and record.leader_recovery_state == 1
    if policy.allows_unclean(topic.name):
        return record
    holders = {*isr, *topic.exceptional(partition).elr}
    kept = sorted(holders.intersection(before))
    leaderless = record is not None and record.leader == -1 and topic.leader(partition) >= 0
    if unclean or leaderless or (holders and not kept):
        raise InvalidReplicaAssignment(
            f"the reassignment of {topic.name}-{partition} cannot be cancelled: none of {list(before)} could "
            "lead without a loss"
        )
    # What was acknowledged is on as many replicas as the minimum says, and a host of those that stay may have
    # died unnoticed. The new ones may be what is left.
    minimum = min(policy.min_insync_replicas(topic.name), len(before))
    if len(kept) < min(minimum, len(holders)):
        raise InvalidReplicaAssignment(
            f"the reassignment of {topic.name}-{partition} cannot be cancelled now: of {list(before)} only"
            f" {kept} hold everything, and min.insync.replicas is {minimum}; wait until more of them are in"
            f" sync, or reassign it to brokers that are ({sorted(holders)})"
        )
    return record


def list_reassignments(
    policy: ReplicationPolicy, asked: Sequence[tuple[str, Sequence[int]]] | None
) -> list[OngoingReassignment]:
    """Those under way, of all topics or of the partitions asked for. Unknown ones are left out."""
    image = policy.image
    if asked is None:
        names = image.topic_names()
        return [each for name in names for each in _ongoing(image.topics_by_name[name], None)]
    found: list[OngoingReassignment] = []
    for name, partitions in asked:
        topic = image.topic(name)
        if topic is not None:
            found.extend(_ongoing(topic, partitions))
    return found


def _ongoing(topic: TopicImage, partitions: Sequence[int] | None) -> Iterator[OngoingReassignment]:
    for partition in topic.exceptional_partitions():
        place = _place(topic, partition)
        if (place.adding or place.removing) and (partitions is None or partition in partitions):
            yield OngoingReassignment(topic.name, partition, *place)

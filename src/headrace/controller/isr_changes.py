"""Changes of ISRs that leaders ask for (AlterPartition).

A leader names the row that it knows by its leader epoch and its partition epoch, and each replica by the
incarnation that fetched. So a proposal of a deposed leader, one that crossed a fence on its way, and one for
a replica that has restarted since are refused (KIP-497, KIP-841, KIP-903).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from headrace.controller.operations import AlteredPartition, IsrChange, IsrMember, RecordGroup, Result
from headrace.controller.partition_changes import PartitionChanges
from headrace.controller.policy import ReplicationPolicy, has_directory
from headrace.controller.topic_image import KEEP_LEADER, TopicImage
from headrace.core.errors import (
    FencedLeaderEpoch,
    HeadraceError,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    NotController,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord


def alter_partitions(
    policy: ReplicationPolicy, broker_id: BrokerId, epoch: BrokerEpoch, changes: Sequence[IsrChange]
) -> Result[list[AlteredPartition]]:
    """Raises StaleBrokerEpoch or UnknownServerId for all; otherwise each change has its own outcome."""
    policy.check_incarnation(broker_id, epoch)
    groups: list[RecordGroup] = []
    outcomes: list[AlteredPartition] = []
    named = Counter((change.topic_id, change.partition) for change in changes)
    builders: dict[UUID, PartitionChanges] = {}
    for change in changes:
        topic = policy.image.topic_by_id(change.topic_id)
        try:
            if topic is None:
                raise UnknownTopicId(f"there is no topic with id {change.topic_id}")
            if named[change.topic_id, change.partition] > 1:
                raise InvalidRequest(f"partition {topic.name}-{change.partition} is listed twice")
            check_row(policy, broker_id, topic, change)
            check_isr(policy, topic, change)
        except HeadraceError as error:
            outcomes.append(_now(topic, change, error))
            continue
        builder = builders.get(change.topic_id)
        if builder is None:
            builder = builders[change.topic_id] = PartitionChanges(policy, topic)
        record = builder.change(
            change.partition, isr=[member.broker_id for member in change.isr], recovering=change.recovering
        )
        if record is None:
            # The leader asks for the ISR that holds already, so as to have a row that settles an earlier
            # proposal of unknown outcome: after it, that one can no longer be committed.
            record = PartitionChangeRecord(
                partition_id=change.partition, topic_id=change.topic_id, isr=list(topic.isr(change.partition))
            )
        groups.append([record])
        outcomes.append(_after(topic, change, record, broker_id))
    return Result(groups, outcomes)


def check_row(policy: ReplicationPolicy, broker_id: BrokerId, topic: TopicImage, change: IsrChange) -> None:
    """The proposal must come from the leader of now, and be made on the row of now."""
    partition = change.partition
    where = f"{topic.name}-{partition}"
    if partition not in topic:
        raise UnknownTopicOrPartition(f"there is no partition {where}")
    leader_epoch, partition_epoch = topic.leader_epoch(partition), topic.partition_epoch(partition)
    checked = policy.safeguards.leader_and_partition_epoch
    if change.leader_epoch > leader_epoch or change.partition_epoch > partition_epoch:
        raise NotController(f"{where} is known here only up to epoch {leader_epoch}, row {partition_epoch}")
    if checked and change.leader_epoch < leader_epoch:
        raise FencedLeaderEpoch(f"{where} is in leader epoch {leader_epoch}, not {change.leader_epoch}")
    if topic.leader(partition) != broker_id:
        raise InvalidRequest(f"{where} is led by {topic.leader(partition)}, not by {broker_id}")
    if checked and change.partition_epoch < partition_epoch:
        raise InvalidUpdateVersion(
            f"{where} has partition epoch {partition_epoch}, not {change.partition_epoch}"
        )


def check_isr(policy: ReplicationPolicy, topic: TopicImage, change: IsrChange) -> None:
    partition = change.partition
    where = f"{topic.name}-{partition}"
    proposed = [member.broker_id for member in change.isr]
    if len(set(proposed)) != len(proposed) or not set(proposed) <= set(topic.replicas(partition)):
        raise InvalidRequest(f"{proposed} cannot be the ISR of {where}: its replicas are others")
    if topic.leader(partition) not in proposed:
        raise InvalidRequest(f"the ISR {proposed} of {where} lacks the leader")
    if change.recovering and len(proposed) > 1:
        raise InvalidRequest(f"{where} is recovering: its ISR is the leader alone")
    if change.recovering and not topic.exceptional(partition).recovering:
        raise InvalidRequest(f"{where} has recovered; that cannot be taken back")
    members = topic.isr(partition)
    for member in change.isr:
        reason = _ineligible(policy, topic, partition, member, stays=member.broker_id in members)
        if reason is not None:
            raise IneligibleReplica(f"broker {member.broker_id} cannot be in the ISR of {where}: {reason}")


def _ineligible(
    policy: ReplicationPolicy, topic: TopicImage, partition: int, member: IsrMember, *, stays: bool
) -> str | None:
    """Why this replica may not be in the ISR; None if it may.

    A member that is stopping may stay: a stopping leader with nobody to hand over to has to admit somebody.
    """
    broker = policy.image.brokers.get(member.broker_id)
    if broker is None:
        return "it is not registered"
    if policy.safeguards.fenced_not_admitted:
        if broker.fenced:
            return "it is fenced"
        if broker.stopping and not stays:
            return "it is stopping"
        if not has_directory(broker, topic.directory_of(partition, member.broker_id)):
            return "its directory is offline"
    if policy.safeguards.broker_epoch_in_proposal and member.broker_epoch != broker.epoch:
        if stays and member.broker_epoch == -1:
            return None
        return f"incarnation {member.broker_epoch} fetched, {broker.epoch} is registered"
    return None


def _now(topic: TopicImage | None, change: IsrChange, error: HeadraceError | None) -> AlteredPartition:
    if topic is None or change.partition not in topic:
        return AlteredPartition(change.topic_id, change.partition, error=error)
    row = topic.state(change.partition)
    return AlteredPartition(
        change.topic_id,
        change.partition,
        row.leader,
        row.leader_epoch,
        row.partition_epoch,
        row.isr,
        row.exceptional.recovering,
        error,
    )


def _after(
    topic: TopicImage, change: IsrChange, record: PartitionChangeRecord, broker_id: int
) -> AlteredPartition:
    row = _now(topic, change, None)
    row = row._replace(partition_epoch=row.partition_epoch + 1)
    if record.isr is not None:
        row = row._replace(isr=tuple(record.isr))
    if record.leader_recovery_state >= 0:
        row = row._replace(recovering=record.leader_recovery_state == 1)
    if record.leader != KEEP_LEADER:
        row = row._replace(leader=record.leader, leader_epoch=row.leader_epoch + 1)
        if record.leader != broker_id:
            where = f"{topic.name}-{change.partition}"
            error = NewLeaderElected(f"the reassignment of {where} is complete; {record.leader} leads it")
            row = row._replace(error=error)
    return row

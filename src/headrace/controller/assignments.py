"""The replicas of new partitions: those that a client wrote down, checked, or those that placement chose."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.controller.image import MetadataImage
from headrace.controller.placement import Candidate
from headrace.controller.topic_image import UNASSIGNED_DIRECTORY
from headrace.core.errors import InvalidReplicaAssignment
from headrace.protocol.stored.partition_record import PartitionRecord


def candidates(image: MetadataImage) -> list[Candidate]:
    return [Candidate(broker.broker_id, broker.rack, not broker.active) for broker in image.brokers.values()]


def check_manual(image: MetadataImage, partition: int, replicas: Sequence[int], factor: int | None) -> None:
    """`factor` is the replica count that the partitions before this one had."""
    where = f"the assignment of partition {partition}"
    if not replicas:
        raise InvalidReplicaAssignment(f"{where} names no broker")
    if len(set(replicas)) != len(replicas):
        raise InvalidReplicaAssignment(f"{where} names a broker twice: {list(replicas)}")
    for broker_id in replicas:
        if broker_id not in image.brokers:
            raise InvalidReplicaAssignment(f"{where} names broker {broker_id}, which is not registered")
    if factor is not None and len(replicas) != factor:
        raise InvalidReplicaAssignment(f"{where} has {len(replicas)} replicas, others have {factor}")
    if not any(image.brokers[broker_id].active for broker_id in replicas):
        raise InvalidReplicaAssignment(f"no broker in {where} is alive")


def new_partition(
    image: MetadataImage,
    topic_id: UUID,
    partition: int,
    replicas: Sequence[int],
    *,
    leader_epoch: int = 0,
) -> PartitionRecord:
    """Its ISR is every replica that lives, its leader the first of them: LeaderInIsr holds from birth."""
    isr = [broker_id for broker_id in replicas if image.brokers[broker_id].active]
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=isr,
        removing_replicas=[],
        adding_replicas=[],
        leader=isr[0],
        leader_epoch=leader_epoch,
        partition_epoch=0,
        directories=[_directory(image, broker_id) for broker_id in replicas],
    )


def _directory(image: MetadataImage, broker_id: int) -> UUID:
    """A broker with one directory has no choice; one with several tells its choice later."""
    directories = image.brokers[broker_id].directories
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY

"""Fences: a broker that is not heard of leads nothing, and no ISR waits for it.

A fence is one group of records: the change of the registration and of every partition that it touches. So
nobody ever sees a fenced broker in an ISR.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from headrace.controller.operations import RecordGroup, Result
from headrace.controller.partition_changes import PartitionChanges
from headrace.controller.policy import ReplicationPolicy
from headrace.controller.registration_states import FENCED, UNFENCED
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.message import Message
from headrace.protocol.stored.broker_registration_change_record import BrokerRegistrationChangeRecord


def fence_brokers(
    policy: ReplicationPolicy,
    broker_ids: Iterable[int],
    *,
    epochs: Mapping[int, int] | None = None,
) -> Result[int]:
    """Fence them all at once. The answer is how many partitions change.

    Of those named in `epochs` only that incarnation is fenced. Who is unknown or fenced is passed over.
    """
    group: RecordGroup = []
    dead: dict[int, None] = {}
    for broker_id in sorted(set(broker_ids)):
        broker = policy.image.brokers.get(broker_id)
        if broker is None or broker.fenced or (epochs or {}).get(broker_id, broker.epoch) != broker.epoch:
            continue
        dead[broker_id] = None
        group.append(
            BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCED)
        )
    if not dead:
        return Result([], 0)
    group.extend(out_of_sync(policy, frozenset(dead)))
    return Result([group], len(group) - len(dead))


def out_of_sync(policy: ReplicationPolicy, broker_ids: Collection[int]) -> Iterator[Message]:
    """Every ISR without these brokers, every leadership of theirs moved."""
    for topic in policy.image.topics_by_name.values():
        touched = topic.partitions_with_any_isr_member(broker_ids)
        if not touched:
            continue
        changes = PartitionChanges(policy, topic, unfit=broker_ids)
        for partition in touched:
            left = [each for each in topic.isr(partition) if each not in broker_ids]
            record = changes.change(partition, isr=left)
            if record is not None:
                yield record


def unfence_broker(policy: ReplicationPolicy, broker_id: BrokerId, epoch: BrokerEpoch) -> Result[int]:
    """Let it lead again, first the leaderless partitions that it may lead: the answer counts those."""
    broker = policy.check_incarnation(broker_id, epoch)
    if not broker.fenced:
        return Result([], 0)
    group: RecordGroup = [
        BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=UNFENCED)
    ]
    group.extend(elections_of_leaderless(policy, ready=broker_id))
    return Result([group], len(group) - 1)


def elections_of_leaderless(policy: ReplicationPolicy, *, ready: int = -1) -> Iterator[Message]:
    for topic in policy.image.topics_by_name.values():
        leaderless = topic.leaderless_partitions()
        if not leaderless:
            continue
        changes = PartitionChanges(policy, topic, ready=ready)
        for partition in leaderless:
            record = changes.change(partition)
            if record is not None:
                yield record

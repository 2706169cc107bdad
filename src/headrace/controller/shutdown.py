"""Controlled shutdown: a broker that wants to stop hands over before it does."""

from __future__ import annotations

from headrace.controller.operations import RecordGroup, Result
from headrace.controller.partition_changes import PartitionChanges
from headrace.controller.policy import ReplicationPolicy
from headrace.controller.registration_states import STOPPING
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.stored.broker_registration_change_record import BrokerRegistrationChangeRecord


def begin_shutdown(policy: ReplicationPolicy, broker_id: BrokerId, epoch: BrokerEpoch) -> Result[int]:
    """Mark the broker as stopping and move what it leads. The answer is how many leaderships it keeps.

    It keeps those that nobody else in the ISR can take: asked again, they are tried again. Where others are
    in sync it leaves the ISR at once, so that no write waits for it when it goes.
    """
    broker = policy.check_incarnation(broker_id, epoch)
    group: RecordGroup = []
    if not broker.stopping:
        group.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=STOPPING
            )
        )
    kept = 0
    me = frozenset({broker_id})
    for topic in policy.image.topics_by_name.values():
        changes: PartitionChanges | None = None
        for partition in topic.partitions_with_isr_member(broker_id):
            left = [each for each in topic.isr(partition) if each != broker_id]
            leads = topic.leader(partition) == broker_id
            if leads and not any(policy.may_lead(topic, partition, each) for each in left):
                kept += 1
                continue
            if not left:
                continue
            if changes is None:
                changes = PartitionChanges(policy, topic, unfit=me)
            record = changes.change(partition, isr=left)
            if record is not None:
                group.append(record)
    return Result([group] if group else [], kept)

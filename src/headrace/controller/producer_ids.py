"""Producer ids are handed to brokers in blocks, so that a new producer costs no commit."""

from __future__ import annotations

from headrace.controller.operations import ProducerIdBlock, Result
from headrace.controller.policy import ReplicationPolicy
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.stored.producer_ids_record import ProducerIdsRecord

BLOCK_LENGTH = 1000


def allocate(policy: ReplicationPolicy, broker_id: BrokerId, epoch: BrokerEpoch) -> Result[ProducerIdBlock]:
    """The next block. What a broker does not use of it is never handed out again."""
    policy.check_incarnation(broker_id, epoch)
    first = policy.image.next_producer_id
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=epoch, next_producer_id=first + BLOCK_LENGTH)
    return Result([[record]], ProducerIdBlock(first, BLOCK_LENGTH))

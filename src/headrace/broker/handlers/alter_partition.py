"""AlterPartition: a leader asks for another ISR. Between brokers only.

Versions 3. 2: topic ids. 3: the broker epoch of each member, so that only the incarnation that fetched is
admitted (KIP-903). Not done: 2, which no broker of ours sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.controller.operations import AlteredPartition, IsrChange, IsrMember
from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.alter_partition_request import AlterPartitionRequest
from headrace.protocol.messages.alter_partition_response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: AlterPartitionRequest, _call: Call
) -> AlterPartitionResponse:
    changes = [
        IsrChange(
            topic.topic_id,
            asked.partition_index,
            asked.leader_epoch,
            asked.partition_epoch,
            [IsrMember(member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs],
            asked.leader_recovery_state == 1,
        )
        for topic in request.topics
        for asked in topic.partitions
    ]
    sender, epoch = BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)
    try:
        outcomes = await context.controller.submit(
            lambda machine: machine.alter_partitions(sender, epoch, changes)
        )
    except HeadraceError as error:
        return AlterPartitionResponse(error_code=code_of(error))
    topics: dict[UUID, list[PartitionData]] = {}
    for outcome in outcomes:
        topics.setdefault(outcome.topic_id, []).append(_answer(outcome))
    return AlterPartitionResponse(
        topics=[TopicData(topic_id=topic_id, partitions=rows) for topic_id, rows in topics.items()]
    )


def _answer(outcome: AlteredPartition) -> PartitionData:
    return PartitionData(
        partition_index=outcome.partition,
        error_code=0 if outcome.error is None else code_of(outcome.error),
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=list(outcome.isr),
        leader_recovery_state=int(outcome.recovering),
        partition_epoch=outcome.partition_epoch,
    )


API: Final = Api(ApiKey.ALTER_PARTITION, 3, 3, AlterPartitionRequest, handle, internal=True)

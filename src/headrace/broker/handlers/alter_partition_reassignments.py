"""AlterPartitionReassignments: move replicas, change a move, or cancel it (KIP-455).

Versions 0-1. 1: whether the number of replicas may change (KIP-860).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.operations import ReassignedPartition, Reassignment
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from headrace.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest, call: Call
) -> AlterPartitionReassignmentsResponse:
    wanted = [
        Reassignment(topic.name, asked.partition_index, asked.replicas)
        for topic in request.topics
        for asked in topic.partitions
    ]
    may_change = call.version < 1 or request.allow_replication_factor_change
    try:
        outcomes = await in_time(
            context.runtime,
            context.peers.reachability,
            context.controller.submit(
                lambda machine: machine.reassign_partitions(wanted, allow_factor_change=may_change)
            ),
        )
    except HeadraceError as error:
        return AlterPartitionReassignmentsResponse(error_code=code_of(error), error_message=text_of(error))
    topics: dict[str, list[ReassignablePartitionResponse]] = {}
    for outcome in outcomes:
        topics.setdefault(outcome.topic, []).append(_answer(outcome))
    answer = AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[ReassignableTopicResponse(name=name, partitions=rows) for name, rows in topics.items()],
    )
    if call.version >= 1:
        answer.allow_replication_factor_change = request.allow_replication_factor_change
    return answer


def _answer(outcome: ReassignedPartition) -> ReassignablePartitionResponse:
    if outcome.error is None:
        return ReassignablePartitionResponse(partition_index=outcome.partition, error_message=None)
    return ReassignablePartitionResponse(
        partition_index=outcome.partition,
        error_code=code_of(outcome.error),
        error_message=text_of(outcome.error),
    )


API: Final = Api(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    0,
    1,
    AlterPartitionReassignmentsRequest,
    handle,
    at_controller=True,
)

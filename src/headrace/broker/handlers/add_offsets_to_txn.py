"""AddOffsetsToTxn: the offsets of a group become part of a transaction.

Versions 0-4. 2: PRODUCER_FENCED. 3: flexible. 4: the client knows TRANSACTION_ABORTABLE. The partition of
__consumer_offsets that holds the group is added like any other.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.internal_topics import GROUPS_TOPIC
from headrace.broker.requests.api import Api, Call
from headrace.broker.transactions.patient_requests import told_to
from headrace.core.errors import CoordinatorNotAvailable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from headrace.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from headrace.transactions.transaction import Producer

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

_KNOWS_FENCING: Final = 2


def handle(
    context: RequestContext, request: AddOffsetsToTxnRequest, call: Call
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    transactional_id = request.transactional_id
    if not transactional_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        place = (GROUPS_TOPIC, context.coordinators.groups.partition_for(request.group_id))
    except CoordinatorNotAvailable:
        return _create_first(context, request, call)
    producer = Producer(request.producer_id, request.producer_epoch)
    return context.coordinators.patient.ask(
        transactional_id,
        lambda shard, _, now_ms: shard.add_partitions(transactional_id, producer, (place,), now_ms),
    ).then(
        lambda _: AddOffsetsToTxnResponse(),
        lambda error: AddOffsetsToTxnResponse(error_code=told_to(call.version, _KNOWS_FENCING, error)),
    )


async def _create_first(
    context: RequestContext, request: AddOffsetsToTxnRequest, call: Call
) -> AddOffsetsToTxnResponse:
    """The first group of the cluster: its offsets come by a transaction."""
    await context.coordinators.internal_topics.ensure(GROUPS_TOPIC)
    if context.metadata.image.topic(GROUPS_TOPIC) is None:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    answer = handle(context, request, call)
    return answer if isinstance(answer, AddOffsetsToTxnResponse) else await answer


API: Final = Api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, AddOffsetsToTxnRequest, handle)

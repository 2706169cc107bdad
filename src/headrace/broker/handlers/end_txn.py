"""EndTxn: commit or abort a transaction.

Versions 0-5. 2: PRODUCER_FENCED. 3: flexible. 4: the client knows TRANSACTION_ABORTABLE. 5: every end raises
the epoch, and the answer says what the producer is from then on (KIP-890). Whoever knows the id, the producer
id and the epoch may end a transaction: its producer need not live any more.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.transactions.patient_requests import told_to
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.end_txn_response import EndTxnResponse
from headrace.transactions.ending import EndRequest
from headrace.transactions.transaction import Producer

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

_KNOWS_FENCING: Final = 2
_RAISES_EPOCH: Final = 5


def handle(
    context: RequestContext, request: EndTxnRequest, call: Call
) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    wanted = EndRequest(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        raises_epoch=call.version >= _RAISES_EPOCH,
    )

    def answer(producer: Producer) -> EndTxnResponse:
        if not wanted.raises_epoch:
            return EndTxnResponse()
        return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)

    def refuse(error: Exception) -> EndTxnResponse:
        return EndTxnResponse(error_code=told_to(call.version, _KNOWS_FENCING, error))

    return context.coordinators.transaction_requests.ask(
        wanted.transactional_id,
        lambda new_id: lambda shard, _, now_ms: shard.end(_with_id(wanted, new_id), now_ms),
    ).then(answer, refuse)


def _with_id(wanted: EndRequest, new_id: int | None) -> EndRequest:
    return wanted if new_id is None else wanted._replace(new_producer_id=new_id)


API: Final = Api(ApiKey.END_TXN, 0, 5, EndTxnRequest, handle)

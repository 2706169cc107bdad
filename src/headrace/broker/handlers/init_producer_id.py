"""InitProducerId: an identity for a producer.

Versions 0-6. 3: a producer may name the id and epoch it has (KIP-360). 4: PRODUCER_FENCED. 5: the client
knows TRANSACTION_ABORTABLE. 6: two-phase transactions, and keeping an open one (KIP-939), which Kafka 4.3
does not advertise. Without a transactional id nothing is lost by giving a producer a new id, whatever it
names.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.broker.transactions.patient_requests import told_to
from headrace.coordinators.decision import Decision
from headrace.core.completion import Completion
from headrace.core.errors import CoordinatorNotAvailable, HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.transactions.ending import NeedsProducerId
from headrace.transactions.initialising import InitRequest
from headrace.transactions.shard import ID_BYTES, Initialised, TransactionShard
from headrace.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID, Producer

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

_KNOWS_FENCING: Final = 4


def handle(
    context: RequestContext, request: InitProducerIdRequest, call: Call
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if call.version >= 3 and (request.producer_id >= 0) != (request.producer_epoch >= 0):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _allocate(context)
    if not request.transactional_id:
        return _refused(ErrorCode.INVALID_REQUEST)
    return _initialise(context, request, request.transactional_id, call.version)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)


async def _allocate(context: RequestContext) -> InitProducerIdResponse:
    try:
        producer_id = await context.coordinators.producer_ids.next()
    except HeadraceError as error:
        return _refused(code_of(error))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _initialise(
    context: RequestContext, request: InitProducerIdRequest, transactional_id: str, version: int
) -> Completion[InitProducerIdResponse]:
    has = Producer(request.producer_id, request.producer_epoch)
    wanted = InitRequest(
        transactional_id,
        request.transaction_timeout_ms,
        has if has.producer_id >= 0 else None,
        request.keep_prepared_txn,
    )
    two_phase = request.enable2_pc

    def answer(outcome: Initialised | HeadraceError) -> InitProducerIdResponse:
        if isinstance(outcome, HeadraceError):
            return refuse(outcome)
        ongoing = outcome.ongoing or Producer(NO_PRODUCER_ID, NO_EPOCH)
        return InitProducerIdResponse(
            producer_id=outcome.producer.producer_id,
            producer_epoch=outcome.producer.epoch,
            ongoing_txn_producer_id=ongoing.producer_id,
            ongoing_txn_producer_epoch=ongoing.epoch,
        )

    def refuse(error: Exception) -> InitProducerIdResponse:
        return _refused(told_to(version, _KNOWS_FENCING, error))

    def initialise(
        shard: TransactionShard, new_id: int | None, now_ms: int
    ) -> Decision[Initialised | NeedsProducerId | HeadraceError]:
        if new_id is None and transactional_id not in shard.transactions:
            _require_room(context, transactional_id)
        return shard.initialise(wanted._replace(new_producer_id=new_id), now_ms, two_phase=two_phase)

    return context.coordinators.transaction_requests.ask(
        transactional_id,
        lambda new_id: lambda shard, _, now_ms: initialise(shard, new_id, now_ms),
    ).then(answer, refuse)


def _require_room(context: RequestContext, transactional_id: str) -> None:
    """For an id that is new. Producers look for the coordinator anew and try again."""
    if not context.coordinators.transaction_state.admits(ID_BYTES + len(transactional_id)):
        raise CoordinatorNotAvailable("the coordinator has no memory for more transactional ids")


API: Final = Api(ApiKey.INIT_PRODUCER_ID, 0, 6, InitProducerIdRequest, handle)

"""ListTransactions: the transactional ids that this broker coordinates.

Versions 0-2. 1: only those that are open for longer than a time (KIP-994). 2: only ids that fit a pattern
(KIP-1152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.core.errors import HeadraceError, NotCoordinator
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState
from headrace.transactions.listing import Filter, parse_filter
from headrace.transactions.transaction import Transaction

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext,
    request: ListTransactionsRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> ListTransactionsResponse:
    coordinator = context.coordinators.transactions
    if coordinator.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    wanted, unknown = parse_filter(
        request.state_filters, request.producer_id_filters, request.duration_filter
    )
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    try:
        for index, _ in list(coordinator.loaded()):
            if context.runtime.turns.is_over:
                await context.runtime.turns.next()
            response.transaction_states += [_row(each) for each in await _listed(context, index, wanted)]
        if request.transactional_id_pattern:
            await _keep_matching(context, response, request.transactional_id_pattern)
    except HeadraceError as error:
        return ListTransactionsResponse(error_code=code_of(error))
    return response


async def _keep_matching(context: RequestContext, response: ListTransactionsResponse, pattern: str) -> None:
    names = [row.transactional_id for row in response.transaction_states]
    matching = set(await context.coordinators.patterns.matching(pattern, names))
    response.transaction_states = [
        row for row in response.transaction_states if row.transactional_id in matching
    ]


async def _listed(context: RequestContext, index: int, wanted: Filter) -> list[Transaction]:
    try:
        found: list[Transaction] = await context.coordinators.transactions.ask_partition(
            index, lambda shard, _, now_ms: shard.list(wanted, now_ms), writes=False
        )
    except NotCoordinator:
        return []  # another broker leads it by now, and lists it
    return found


def _row(transaction: Transaction) -> TransactionState:
    return TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.shown,
    )


API: Final = Api(ApiKey.LIST_TRANSACTIONS, 0, 2, ListTransactionsRequest, handle)

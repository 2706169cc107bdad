"""DescribeTransactions: what the coordinator knows of transactional ids.

Version 0 (KIP-664).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.core.errors import HeadraceError, InvalidRequest
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from headrace.transactions.transaction import Transaction

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext,
    request: DescribeTransactionsRequest,
    call: Call,  # noqa: ARG001 - every handler has this shape
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[await _describe(context, name) for name in request.transactional_ids]
    )


async def _describe(context: RequestContext, name: str) -> TransactionState:
    try:
        if not name:
            raise InvalidRequest("a transactional id is not empty")
        known: Transaction = await context.coordinators.transactions.ask(
            name, lambda shard, _, _now_ms: shard.describe(name), writes=False
        )
    except HeadraceError as error:
        return TransactionState(transactional_id=name, error_code=code_of(error))
    return TransactionState(
        transactional_id=name,
        transaction_state=known.state.shown,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=list(indexes)) for topic, indexes in known.partitions.items()
        ],
    )


API: Final = Api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, DescribeTransactionsRequest, handle)

"""DescribeTransactions and ListTransactions: DESCRIBE on transactional ids, and on the topics of each.

A list leaves out what may not be described. So does the description of a transaction with its topics.
"""

from __future__ import annotations

from headrace.broker.authorization.division import Entries, divide, keep, without
from headrace.broker.authorization.guard import Partly, Verdict
from headrace.broker.authorization.refusals import TRANSACTIONAL_ID_DENIED
from headrace.broker.requests.allowed_operations import may_see_topic
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.message import Message
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.protocol.messages.list_transactions_response import ListTransactionsResponse
from headrace.security.acl import Operation, ResourceType
from headrace.security.rights import Rights


def _not_described(name: str) -> TransactionState:
    return TransactionState(transactional_id=name, error_code=TRANSACTIONAL_ID_DENIED)


def _id(state: TransactionState) -> str:
    return state.transactional_id


_IDS = Entries(
    "transactional_ids", str, DescribeTransactionsResponse, "transaction_states", _not_described, _id
)


def describe_transactions(
    context: RequestContext, rights: Rights, request: DescribeTransactionsRequest, _call: Call
) -> Verdict:
    async def leave_out(response: DescribeTransactionsResponse) -> Message:
        for state in response.transaction_states:
            state.topics = await keep(context, state.topics, lambda each: may_see_topic(rights, each.topic))
        return response

    return divide(
        context,
        request.transactional_ids,
        lambda name: rights.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name),
        lambda allowed, denied: without(request, _IDS, allowed, denied, leave_out),
        Partly(request, leave_out),
    )


def list_transactions(
    context: RequestContext, rights: Rights, request: ListTransactionsRequest, _call: Call
) -> Verdict:
    async def leave_out(response: ListTransactionsResponse) -> ListTransactionsResponse:
        response.transaction_states = await keep(
            context,
            response.transaction_states,
            lambda state: rights.allows_silently(
                Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, state.transactional_id
            ),
        )
        return response

    return Partly(request, leave_out)

"""AddPartitionsToTxn: partitions become part of a transaction, or are asked about.

Versions 0-5. 2: PRODUCER_FENCED. 3: flexible. 4: several transactions in one request, and the question
whether partitions are in one: sent by the leaders of partitions, never by producers (KIP-890). 5: the sender
knows TRANSACTION_ABORTABLE. If one partition does not exist, none is added.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.transactions.adding_partitions import BETWEEN_BROKERS, Codes, join
from headrace.core.completion import Completion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from headrace.transactions.membership import Named
from headrace.transactions.transaction import Producer

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

AT_ONCE: Final = 1_000
"""Transactions, topics and partitions. Of more each has its turn."""


def handle(
    context: RequestContext, request: AddPartitionsToTxnRequest, call: Call
) -> Completion[AddPartitionsToTxnResponse] | Awaitable[AddPartitionsToTxnResponse]:
    if call.version >= BETWEEN_BROKERS:
        if _are_many(request.transactions):
            return _several_in_turns(context, request.transactions, call.version)
        return _Batch(context, request.transactions, call.version).response
    asked = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    if _are_many([asked]):
        return _one_in_turns(context, asked, call.version)
    return _serve(context, asked, call.version).then(
        lambda codes: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_rows(asked.topics, codes))
    )


class _Batch:
    """Each transaction on its own; the answer goes out when all of them are decided."""

    def __init__(
        self, context: RequestContext, transactions: list[AddPartitionsToTxnTransaction], version: int
    ) -> None:
        self.response: Completion[AddPartitionsToTxnResponse] = Completion()
        self._answer = AddPartitionsToTxnResponse()
        self._left = len(transactions)
        for asked in transactions:
            result = AddPartitionsToTxnResult(transactional_id=asked.transactional_id)
            self._answer.results_by_transaction.append(result)
            _serve(context, asked, version).when_done(self._teller(asked, result))
        if not transactions:
            self.response.complete(self._answer)

    def _teller(
        self, asked: AddPartitionsToTxnTransaction, result: AddPartitionsToTxnResult
    ) -> Callable[[Completion[Codes]], None]:
        def tell(decided: Completion[Codes]) -> None:
            result.topic_results = _rows(asked.topics, decided.result())
            self._left -= 1
            if not self._left:
                self.response.complete(self._answer)

        return tell


def _serve(context: RequestContext, asked: AddPartitionsToTxnTransaction, version: int) -> Completion[Codes]:
    return join(
        context.metadata,
        context.coordinators.patient,
        asked.transactional_id,
        Producer(asked.producer_id, asked.producer_epoch),
        [(topic.name, index) for topic in asked.topics for index in topic.partitions],
        verify_only=asked.verify_only,
        version=version,
    )


def _are_many(transactions: Sequence[AddPartitionsToTxnTransaction]) -> bool:
    """Counted no further than is needed: there may be a hundred thousand of each."""
    count = len(transactions)
    for asked in transactions:
        count += len(asked.topics)
        if count > AT_ONCE:
            return True
        for topic in asked.topics:
            count += len(topic.partitions)
    return count > AT_ONCE


async def _one_in_turns(
    context: RequestContext, asked: AddPartitionsToTxnTransaction, version: int
) -> AddPartitionsToTxnResponse:
    rows = await _rows_in_turns(context, asked, await (await _begin(context, asked, version)))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


async def _several_in_turns(
    context: RequestContext, transactions: list[AddPartitionsToTxnTransaction], version: int
) -> AddPartitionsToTxnResponse:
    begun = []
    for asked in transactions:
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        begun.append(await _begin(context, asked, version))
    answer = AddPartitionsToTxnResponse()
    for asked, decided in zip(transactions, begun, strict=True):
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        rows = await _rows_in_turns(context, asked, await decided)
        result = AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=rows)
        answer.results_by_transaction.append(result)
    return answer


async def _begin(
    context: RequestContext, asked: AddPartitionsToTxnTransaction, version: int
) -> Completion[Codes]:
    """A transaction takes all of its partitions together, and so in one go: as many as exist. If one does
    not, which is looked up in turns before, none is taken, however many are named."""
    if not _are_many([asked]):
        return _serve(context, asked, version)
    codes: dict[Named, ErrorCode] = {}
    is_refused = not asked.transactional_id
    for topic in asked.topics:
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        for index in topic.partitions:
            if context.runtime.turns.is_over:
                await context.runtime.turns.next()
            if not asked.transactional_id:
                codes[topic.name, index] = ErrorCode.INVALID_REQUEST
            elif context.metadata.exists(topic.name, index):
                codes[topic.name, index] = ErrorCode.OPERATION_NOT_ATTEMPTED
            else:
                codes[topic.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                is_refused = True
    if not is_refused:
        return _serve(context, asked, version)
    refused: Completion[Codes] = Completion()
    refused.complete(codes)
    return refused


async def _rows_in_turns(
    context: RequestContext, asked: AddPartitionsToTxnTransaction, codes: Codes
) -> list[AddPartitionsToTxnTopicResult]:
    rows = []
    for topic in asked.topics:
        if context.runtime.turns.is_over:
            await context.runtime.turns.next()
        row = AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=[])
        for index in topic.partitions:
            if context.runtime.turns.is_over:
                await context.runtime.turns.next()
            row.results_by_partition.append(_row(topic, index, codes))
        rows.append(row)
    return rows


def _rows(topics: list[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[_row(topic, index, codes) for index in topic.partitions],
        )
        for topic in topics
    ]


def _row(topic: AddPartitionsToTxnTopic, index: int, codes: Codes) -> AddPartitionsToTxnPartitionResult:
    return AddPartitionsToTxnPartitionResult(
        partition_index=index, partition_error_code=codes.get((topic.name, index), ErrorCode.NONE)
    )


API: Final = Api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, AddPartitionsToTxnRequest, handle)

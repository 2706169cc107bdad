"""AddPartitionsToTxn: partitions become part of a transaction, or are asked about.

Versions 0-5. 2: PRODUCER_FENCED. 3: flexible. 4: several transactions in one request, and the question
whether partitions are in one: sent by the leaders of partitions, never by producers (KIP-890). 5: the sender
knows TRANSACTION_ABORTABLE. If one partition does not exist, none is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from headrace.broker.api import Api, Call
from headrace.broker.promise import Promise
from headrace.broker.transactions.joining import BETWEEN_BROKERS, Codes, join
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
from headrace.transactions.transaction import Producer

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


def handle(
    broker: Broker, request: AddPartitionsToTxnRequest, call: Call
) -> Promise[AddPartitionsToTxnResponse]:
    if call.version >= BETWEEN_BROKERS:
        return _Batch(broker, request.transactions, call.version).response
    asked = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return _serve(broker, asked, call.version).then(
        lambda codes: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_rows(asked.topics, codes))
    )


class _Batch:
    """Each transaction on its own; the answer goes out when all of them are decided."""

    def __init__(
        self, broker: Broker, transactions: list[AddPartitionsToTxnTransaction], version: int
    ) -> None:
        self.response: Promise[AddPartitionsToTxnResponse] = Promise()
        self._answer = AddPartitionsToTxnResponse()
        self._left = len(transactions)
        for asked in transactions:
            result = AddPartitionsToTxnResult(transactional_id=asked.transactional_id)
            self._answer.results_by_transaction.append(result)
            _serve(broker, asked, version).listen(self._teller(asked, result))
        if not transactions:
            self.response.resolve(self._answer)

    def _teller(
        self, asked: AddPartitionsToTxnTransaction, result: AddPartitionsToTxnResult
    ) -> Callable[[Promise[Codes]], None]:
        def tell(decided: Promise[Codes]) -> None:
            result.topic_results = _rows(asked.topics, decided.result())
            self._left -= 1
            if not self._left:
                self.response.resolve(self._answer)

        return tell


def _serve(broker: Broker, asked: AddPartitionsToTxnTransaction, version: int) -> Promise[Codes]:
    return join(
        broker,
        asked.transactional_id,
        Producer(asked.producer_id, asked.producer_epoch),
        [(topic.name, index) for topic in asked.topics for index in topic.partitions],
        verify_only=asked.verify_only,
        version=version,
    )


def _rows(topics: list[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=codes.get((topic.name, index), ErrorCode.NONE),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


API: Final = Api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, AddPartitionsToTxnRequest, handle)

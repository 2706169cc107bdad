"""AddPartitionsToTxn: partitions become part of a transaction, or are asked about.

Versions 0-5. 2: PRODUCER_FENCED. 3: flexible. 4: several transactions in one request, and the question
whether partitions are in one: sent by the leaders of partitions, never by producers (KIP-890). 5: the sender
knows TRANSACTION_ABORTABLE. If one partition does not exist, none is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from headrace.broker.api import Api, Call
from headrace.broker.promise import Promise
from headrace.broker.transactions.requests import ask_patiently, told_to
from headrace.coordinators.decision import Decision, Ticket
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
from headrace.transactions.shard import TransactionShard
from headrace.transactions.transaction import Producer

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

_KNOWS_FENCING: Final = 2
_BETWEEN_BROKERS: Final = 4
_RAISES_EPOCH: Final = 2
"""Only partitions whose producer speaks transaction.version 2 are added by their leaders."""

Codes = Mapping[Named, ErrorCode]
"""NONE where a partition is not in it."""


def handle(
    broker: Broker, request: AddPartitionsToTxnRequest, call: Call
) -> Promise[AddPartitionsToTxnResponse]:
    if call.version >= _BETWEEN_BROKERS:
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
    """Always resolved: what is refused is refused partition by partition."""
    names = [(topic.name, index) for topic in asked.topics for index in topic.partitions]
    if not asked.transactional_id:
        return _all(names, ErrorCode.INVALID_REQUEST)
    if unknown := [named for named in names if not broker.partitions.exists(*named)]:
        codes = dict.fromkeys(names, ErrorCode.OPERATION_NOT_ATTEMPTED)
        codes.update(dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return _resolved(codes)
    producer = Producer(asked.producer_id, asked.producer_epoch)
    client_version = _RAISES_EPOCH if version >= _BETWEEN_BROKERS else 0

    def decide(shard: TransactionShard, ticket: Ticket, now_ms: int) -> Decision[Any]:  # noqa: ARG001 - the shape of an operation
        if asked.verify_only:
            return shard.verify_partitions(asked.transactional_id, producer, names)
        return shard.add_partitions(
            asked.transactional_id, producer, names, now_ms, client_version=client_version
        )

    return ask_patiently(broker, asked.transactional_id, decide, writes=not asked.verify_only).then(
        lambda missing: dict.fromkeys(missing or (), ErrorCode.TRANSACTION_ABORTABLE),
        lambda error: dict.fromkeys(names, told_to(version, _KNOWS_FENCING, error)),
    )


def _all(names: Iterable[Named], code: ErrorCode) -> Promise[Codes]:
    return _resolved(dict.fromkeys(names, code))


def _resolved(codes: Codes) -> Promise[Codes]:
    promise: Promise[Codes] = Promise()
    promise.resolve(codes)
    return promise


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

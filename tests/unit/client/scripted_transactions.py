"""A scripted coordinator of transactions, and partitions in which some are open."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages import describe_producers_response as producers
from headrace.protocol.messages import describe_transactions_response as transactions
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.protocol.messages.list_transactions_response import ListTransactionsResponse
from headrace.protocol.messages.list_transactions_response import TransactionState as ListedState
from headrace.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from headrace.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from tests.unit.client.scripted_groups import Partition, ScriptedGroups, by_topic


@dataclass
class ScriptedTransaction:
    state: str = "Ongoing"
    producer_id: int = 7
    epoch: int = 0
    start_ms: int = -1
    partitions: list[Partition] = field(default_factory=list)


class ScriptedTransactions(ScriptedGroups):
    """`open` are the producers that each partition knows."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers.update(
            {
                ListTransactionsRequest: self._list_transactions,
                DescribeTransactionsRequest: self._describe_transactions,
                DescribeProducersRequest: self._describe_producers,
                InitProducerIdRequest: self._init_producer_id,
                WriteTxnMarkersRequest: self._write_markers,
            }
        )
        self.transactions: dict[str, ScriptedTransaction] = {}
        self.open: dict[Partition, list[producers.ProducerState]] = {}

    def _list_transactions(self, request: ListTransactionsRequest, _version: int) -> ListTransactionsResponse:
        broker, self.lists = self.lists % 2, self.lists + 1
        return ListTransactionsResponse(
            transaction_states=[
                ListedState(
                    transactional_id=name, producer_id=known.producer_id, transaction_state=known.state
                )
                for name, known in self.transactions.items()
                if self.home(name) == broker
                and (not request.state_filters or known.state in request.state_filters)
                and (not request.producer_id_filters or known.producer_id in request.producer_id_filters)
            ]
        )

    def _describe_transactions(
        self, request: DescribeTransactionsRequest, _version: int
    ) -> transactions.DescribeTransactionsResponse:
        states = []
        for name in request.transactional_ids:
            known = self.transactions.get(name)
            if known is None:
                code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
                states.append(transactions.TransactionState(transactional_id=name, error_code=code))
                continue
            topics = by_topic(known.partitions)
            states.append(
                transactions.TransactionState(
                    transactional_id=name,
                    transaction_state=known.state,
                    transaction_timeout_ms=60_000,
                    transaction_start_time_ms=known.start_ms,
                    producer_id=known.producer_id,
                    producer_epoch=known.epoch,
                    topics=[
                        transactions.TopicData(topic=topic, partitions=indexes)
                        for topic, indexes in topics.items()
                    ],
                )
            )
        return transactions.DescribeTransactionsResponse(transaction_states=states)

    def _describe_producers(
        self, request: DescribeProducersRequest, _version: int
    ) -> producers.DescribeProducersResponse:
        return producers.DescribeProducersResponse(
            topics=[
                producers.TopicResponse(
                    name=topic.name,
                    partitions=[
                        producers.PartitionResponse(
                            partition_index=index, active_producers=self.open.get((topic.name, index), [])
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def _init_producer_id(self, request: InitProducerIdRequest, _version: int) -> InitProducerIdResponse:
        code = self.refusal()
        if code:
            return InitProducerIdResponse(error_code=code)
        known = self.transactions[request.transactional_id or ""]
        known.state, known.partitions, known.epoch = "Empty", [], known.epoch + 2
        return InitProducerIdResponse(producer_id=known.producer_id, producer_epoch=known.epoch)

    def _write_markers(self, request: WriteTxnMarkersRequest, _version: int) -> WriteTxnMarkersResponse:
        results = []
        for marker in request.markers:
            code = self.refusal()
            for topic in marker.topics:
                for index in topic.partition_indexes:
                    for state in self.open[topic.name, index]:
                        if not code and state.producer_id == marker.producer_id:
                            state.current_txn_start_offset = -1
            results.append(
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
            )
        return WriteTxnMarkersResponse(markers=results)

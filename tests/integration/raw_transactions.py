"""A transactional producer in single requests: it can stop anywhere, and come back as somebody else."""

from __future__ import annotations

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from headrace.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from headrace.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.end_txn_response import EndTxnResponse
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.list_transactions_request import ListTransactionsRequest
from headrace.protocol.messages.list_transactions_response import ListTransactionsResponse
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from headrace.protocol.records import NewRecord, encode_batch
from headrace.transactions.transaction import Producer
from tests.integration.real_client import eventually
from tests.wire import Wire

BUSY = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
EVERY_BATCH = -1


class RawTransactions:
    """All requests go to one broker, which is every coordinator and every leader."""

    def __init__(self, bootstrap: str) -> None:
        self.wire = Wire(int(bootstrap.rpartition(":")[2]))
        self._sequences: dict[tuple[Producer, str, int], int] = {}

    def close(self) -> None:
        self.wire.close()

    def initialise(
        self,
        name: str,
        *,
        version: int = 5,
        timeout_ms: int = 60_000,
        has: Producer | None = None,
        two_phase: bool = False,
        keep: bool = False,
    ) -> InitProducerIdResponse:
        """Patient, like a client: until the transaction before is out of the way."""
        self.wire.ask(FindCoordinatorRequest(key=name, key_type=1), 3, FindCoordinatorResponse)
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, enable2_pc=two_phase
        )
        request.keep_prepared_txn = keep
        if has is not None:
            request.producer_id, request.producer_epoch = has
        answers: list[InitProducerIdResponse] = []

        def is_decided() -> bool:
            answers.append(self.wire.ask(request, version, InitProducerIdResponse))
            return answers[-1].error_code not in BUSY

        eventually(is_decided)
        return answers[-1]

    def producer(self, name: str, *, timeout_ms: int = 60_000, has: Producer | None = None) -> Producer:
        answer = self.initialise(name, timeout_ms=timeout_ms, has=has)
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
        return Producer(answer.producer_id, answer.producer_epoch)

    def add(
        self, name: str, producer: Producer, topic: str, *partitions: int, version: int = 3
    ) -> list[ErrorCode]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        answer = self.wire.ask(request, version, AddPartitionsToTxnResponse)
        (result,) = answer.results_by_topic_v3_and_below
        return [ErrorCode(row.partition_error_code) for row in result.results_by_partition]

    def produce(
        self,
        name: str,
        producer: Producer,
        topic: str,
        value: bytes,
        *,
        partition: int = 0,
        version: int = 11,
    ) -> ErrorCode:
        sequence = self._sequences.get((producer, topic, partition), 0)
        batch = encode_batch(
            [NewRecord(value, timestamp=1)],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        rows = [PartitionProduceData(index=partition, records=batch)]
        request = ProduceRequest(
            transactional_id=name,
            acks=EVERY_BATCH,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=topic, partition_data=rows)],
        )
        answer = self.wire.ask(request, version, ProduceResponse)
        code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if code is ErrorCode.NONE:
            self._sequences[producer, topic, partition] = sequence + 1
        return code

    def end(self, name: str, producer: Producer, *, commit: bool, version: int = 4) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=commit,
        )
        answer = self.wire.ask(request, version, EndTxnResponse)
        assert isinstance(answer, EndTxnResponse)
        return answer

    def describe(self, name: str) -> TransactionState:
        answer = self.wire.ask(
            DescribeTransactionsRequest(transactional_ids=[name]), 0, DescribeTransactionsResponse
        )
        (state,) = answer.transaction_states
        assert isinstance(state, TransactionState)
        return state

    def list(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        answer = self.wire.ask(request, 2, ListTransactionsResponse)
        assert isinstance(answer, ListTransactionsResponse)
        return answer

    def write_marker(
        self, producer: Producer, topic: str, *, commit: bool, coordinator_epoch: int, partition: int = 0
    ) -> ErrorCode:
        """As an administrator does it."""
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=commit,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
            coordinator_epoch=coordinator_epoch,
        )
        answer = self.wire.ask(WriteTxnMarkersRequest(markers=[marker]), 1, WriteTxnMarkersResponse)
        return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)

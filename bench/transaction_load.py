"""Transactions sent by hand: each producer has a connection and a partition, and ends a transaction before it
begins the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from bench.raw_client import NOT_READY, PATIENCE_S, PAUSE_S, RawClient, require
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from headrace.protocol.messages.end_txn_request import EndTxnRequest
from headrace.protocol.messages.end_txn_response import EndTxnResponse
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch

RECORDS_EACH = 10
RECORD_BYTES = 100
RETRY_S = 0.02
"""After which Java's producer asks again, while the markers of its transaction before are being written."""
INIT_VERSION = 4
TIMEOUT_MS = 60_000
ACKS_ALL = -1
HIGHEST_SEQUENCE = 0x7FFFFFFF
RETRIED = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    # A broker may hear of a new topic a moment after its controller.
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class TransactionalProducer:
    """By transaction.version 2 (KIP-890): the first Produce puts its partition into the transaction, and each
    end raises the epoch."""

    PRODUCE_VERSION = 12
    END_VERSION = 5

    def __init__(self, client: RawClient, transactional_id: str, topic: str, partition: int) -> None:
        self._client = client
        self._id = transactional_id
        self._topic = topic
        self._partition = partition
        self._producer_id = -1
        self._epoch = -1
        self._sequence = 0
        self._records = [NewRecord(bytes(RECORD_BYTES), None, 0) for _ in range(RECORDS_EACH)]
        self.retries = 0

    async def initialise(self) -> None:
        give_up = time.monotonic() + PATIENCE_S
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS)
        while True:
            answer = await self._client.ask(request, INIT_VERSION, InitProducerIdResponse)
            if answer.error_code not in NOT_READY or time.monotonic() > give_up:
                break
            await asyncio.sleep(PAUSE_S)
        require(answer.error_code, "InitProducerId")
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    async def transact(self, times: int) -> None:
        for _ in range(times):
            await self._begin()
            await self._produce()
            await self._end()

    async def _begin(self) -> None:
        """Nothing: the first records do it."""

    async def _produce(self) -> None:
        now_ms = int(time.time() * 1000)
        batch = encode_batch(
            [record._replace(timestamp=now_ms) for record in self._records],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=self._partition, records=batch)
        request = ProduceRequest(
            transactional_id=self._id,
            acks=ACKS_ALL,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=self._topic, partition_data=[data])],
        )
        while True:
            answer = await self._client.ask(request, self.PRODUCE_VERSION, ProduceResponse)
            code = answer.responses[0].partition_responses[0].error_code
            if code not in RETRIED:
                break
            await self._pause()
        require(code, "Produce")
        self._sequence = (self._sequence + RECORDS_EACH) & HIGHEST_SEQUENCE

    async def _end(self) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=True,
        )
        answer = await self._client.ask(request, self.END_VERSION, EndTxnResponse)
        require(answer.error_code, "EndTxn")
        self._on_end(answer)

    def _on_end(self, answer: EndTxnResponse) -> None:
        self._producer_id, self._epoch, self._sequence = answer.producer_id, answer.producer_epoch, 0

    async def _pause(self) -> None:
        self.retries += 1
        await asyncio.sleep(RETRY_S)


class OlderProducer(TransactionalProducer):
    """By the rules of KIP-98, as librdkafka: partitions are named first, and the epoch stays."""

    PRODUCE_VERSION = 10
    ADD_VERSION = 3
    END_VERSION = 3

    async def _begin(self) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self._topic, partitions=[self._partition])],
        )
        while True:
            answer = await self._client.ask(request, self.ADD_VERSION, AddPartitionsToTxnResponse)
            topic = answer.results_by_topic_v3_and_below[0]
            code = topic.results_by_partition[0].partition_error_code
            if code not in RETRIED:
                break
            await self._pause()
        require(code, "AddPartitionsToTxn")

    def _on_end(self, answer: EndTxnResponse) -> None:
        """The producer stays what it is, and counts on."""


async def run(producers: Sequence[TransactionalProducer], times: int) -> float:
    """Every producer carries out so many transactions, all of them at once; the seconds that it took."""
    began = time.monotonic()
    tasks = [asyncio.create_task(producer.transact(times)) for producer in producers]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return time.monotonic() - began

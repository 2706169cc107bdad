"""One transaction, written to a scripted broker: sequences, retries, and what is told when it goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.client.cluster import Cluster
from headrace.client.errors import RecordsRefused, Refused
from headrace.client.transaction_ends import Fate, Identity, fate_of
from headrace.client.transactional_producer import Records, TransactionalProducer
from headrace.core.ids import TopicPartition
from headrace.protocol import batch as batches
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from headrace.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from headrace.protocol.messages.produce_request import ProduceRequest
from headrace.protocol.records import NewRecord, encode_batch
from tests.unit.client.scripted_broker import ScriptedBroker
from tests.unit.client.test_producer import Store

_ME = Identity("mine", 5, 2)
_TARGET = TopicPartition("topic", 0)


def _records(*values: bytes) -> Records:
    batch = encode_batch([NewRecord(value, timestamp=1) for value in values])
    return Records(bytes(batch[batches.HEADER_SIZE :]), len(values), 1, 1)


class Coordinating(Store):
    def __init__(self, codes: list[int] | None = None, adding: list[int] | None = None) -> None:
        super().__init__(codes)
        self.adding = adding or []
        self.added: list[tuple[str, list[int]]] = []
        self.transactional: set[str | None] = set()

    def add(self, request: AddPartitionsToTxnRequest, version: int) -> AddPartitionsToTxnResponse:
        assert version <= 3
        code = self.adding.pop(0) if self.adding else 0
        topics = request.v3_and_below_topics
        if not code:
            self.added += [(topic.name, list(topic.partitions)) for topic in topics]
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                        for index in topic.partitions
                    ],
                )
                for topic in topics
            ]
        )

    def note(self, request: ProduceRequest, version: int) -> Message | None:
        self.transactional.add(request.transactional_id)
        return self.produce(request, version)

    def handlers(self) -> dict[type[Message], Callable[[Any, int], Message | None]]:
        return {
            ProduceRequest: self.note,
            AddPartitionsToTxnRequest: self.add,
            FindCoordinatorRequest: lambda request, _version: FindCoordinatorResponse(
                coordinators=[
                    Coordinator(key=key, node_id=0, host="unused", port=1) for key in request.coordinator_keys
                ]
            ),
        }


@asynccontextmanager
async def _cluster(store: Coordinating) -> AsyncIterator[Cluster]:
    async with ScriptedBroker(store.handlers()) as broker, Cluster(broker.address) as cluster:
        broker.topics["topic"] = 1
        yield cluster


async def test_sequences_go_on_and_every_batch_is_of_the_transaction() -> None:
    store = Coordinating()
    async with _cluster(store) as cluster:
        producer = TransactionalProducer(cluster, _ME)
        for values in ((b"a", b"b", b"c"), (b"d",), (b"e", b"f")):
            await producer.send(_TARGET, _records(*values))
        await producer.flush()
    headers = [header for _, header, _ in store.batches]
    assert [header.base_sequence for header in headers] == [0, 3, 4]
    assert all(header.is_transactional for header in headers)
    assert {(header.producer_id, header.producer_epoch) for header in headers} == {(5, 2)}
    assert [each.value for _, _, records in store.batches for each in records] == [
        b"a", b"b", b"c", b"d", b"e", b"f",
    ]  # fmt: skip
    assert store.added == [("topic", [0])]
    assert store.transactional == {"mine"}
    assert producer.records_sent == 6


async def test_a_batch_that_is_refused_for_a_moment_is_sent_again_with_its_sequence() -> None:
    store = Coordinating([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS])
    async with _cluster(store) as cluster:
        producer = TransactionalProducer(cluster, _ME)
        await producer.send(_TARGET, _records(b"a"))
        await producer.send(_TARGET, _records(b"b"))
        await producer.flush()
    assert [header.base_sequence for _, header, _ in store.batches] == [0, 1]


async def test_a_batch_that_came_before_is_as_good_as_stored() -> None:
    store = Coordinating([ErrorCode.DUPLICATE_SEQUENCE_NUMBER])
    async with _cluster(store) as cluster:
        producer = TransactionalProducer(cluster, _ME)
        await producer.send(_TARGET, _records(b"a"))
        await producer.flush()
    assert producer.records_sent == 1


@pytest.mark.parametrize(
    "store",
    [
        Coordinating([ErrorCode.INVALID_TIMESTAMP]),
        Coordinating(adding=[ErrorCode.TOPIC_AUTHORIZATION_FAILED]),
    ],
)
async def test_a_refusal_of_records_names_their_partition(store: Coordinating) -> None:
    async with _cluster(store) as cluster:
        producer = TransactionalProducer(cluster, _ME)

        async def send() -> None:
            await producer.send(_TARGET, _records(b"a"))
            await producer.flush()

        with pytest.raises(RecordsRefused) as caught:
            await send()
        assert caught.value.partition == _TARGET
        assert caught.value.code in (ErrorCode.INVALID_TIMESTAMP, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE])
async def test_a_fenced_producer_fails_for_good(code: ErrorCode) -> None:
    async with _cluster(Coordinating([code])) as cluster:
        producer = TransactionalProducer(cluster, _ME)
        await producer.send(_TARGET, _records(b"a"))
        for _ in range(2):
            with pytest.raises(Refused) as caught:
                await producer.flush()
            assert caught.value.code == code
        with pytest.raises(Refused):
            await producer.send(_TARGET, _records(b"b"))


async def test_partitions_are_added_again_while_the_transaction_before_ends() -> None:
    store = Coordinating(adding=[ErrorCode.CONCURRENT_TRANSACTIONS])
    async with _cluster(store) as cluster:
        producer = TransactionalProducer(cluster, _ME)
        await producer.add_partitions([_TARGET])
    assert producer.partitions == {_TARGET}
    assert store.added == [("topic", [0])]


async def test_partitions_that_are_refused_are_not_written_to() -> None:
    store = Coordinating(adding=[ErrorCode.PRODUCER_FENCED])
    async with _cluster(store) as cluster:
        producer = TransactionalProducer(cluster, _ME)
        with pytest.raises(Refused):
            await producer.send(_TARGET, _records(b"a"))
    assert not store.batches


@pytest.mark.parametrize(
    ("state", "epoch", "fate"),
    [
        ("Ongoing", 2, Fate.OPEN),
        ("PrepareCommit", 2, Fate.COMMITTED),
        ("CompleteCommit", 2, Fate.COMMITTED),
        ("CompleteAbort", 2, Fate.ABORTED),
        ("CompleteAbort", 3, Fate.ABORTED),  # by the coordinator, on a time-out
        ("PrepareEpochFence", 3, Fate.ABORTED),
        ("Empty", 3, Fate.UNKNOWN),
        ("Ongoing", 3, Fate.UNKNOWN),
        ("CompleteCommit", 3, Fate.UNKNOWN),
        ("CompleteAbort", 4, Fate.UNKNOWN),
        ("Empty", 2, Fate.UNKNOWN),
    ],
)
def test_fate(state: str, epoch: int, fate: Fate) -> None:
    assert fate_of(_ME, state, 5, epoch) is fate


def test_the_fate_of_another_producer_says_nothing() -> None:
    assert fate_of(_ME, "CompleteCommit", 6, 2) is Fate.UNKNOWN

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.partitioner import partition_for_key
from headrace.client.producer import Producer
from headrace.core.ids import TopicPartition
from headrace.protocol import batch as batches
from headrace.protocol.compression import Compression
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.produce_request import ProduceRequest
from headrace.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.protocol.records import NewRecord, Record, decode_records
from tests.unit.client.scripted_broker import ScriptedBroker


class Store:
    """What a broker would store; `codes` are answered first."""

    def __init__(self, codes: list[int] | None = None) -> None:
        self.codes = codes or []
        self.batches: list[tuple[TopicPartition, batches.BatchHeader, list[Record]]] = []

    def produce(self, request: ProduceRequest, version: int) -> ProduceResponse | None:
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        code = self.codes.pop(0) if self.codes else 0
        assert data.records is not None
        header = batches.check(data.records)
        if not code:
            self.batches.append(
                (TopicPartition(topic.name, data.index), header, list(decode_records(data.records)))
            )
        if request.acks == 0:
            return None
        result = PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1 if code else 7)
        return ProduceResponse(
            responses=[TopicProduceResponse(name=topic.name, partition_responses=[result])]
        )

    def handlers(self) -> dict[type[Message], Callable[[Any, int], Message | None]]:
        return {
            ProduceRequest: self.produce,
            InitProducerIdRequest: lambda request, version: InitProducerIdResponse(
                producer_id=9, producer_epoch=1
            ),
        }


async def test_records_with_keys_go_where_java_sends_them() -> None:
    store = Store()
    async with ScriptedBroker(store.handlers()) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 5
        producer = Producer(cluster, compression=Compression.LZ4)
        keys = [b"key-%d" % n for n in range(50)]
        for key in keys:
            await producer.send("t", NewRecord(b"v", key, 1))
        await producer.flush()
        assert producer.records_sent == 50
        for partition, header, records in store.batches:
            assert header.compression == Compression.LZ4
            assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 0)
            for record in records:
                assert record.key is not None
                assert partition_for_key(record.key, 5) == partition.partition
        assert sorted(record.key or b"" for _, _, records in store.batches for record in records) == sorted(
            keys
        )


async def test_full_batches_are_sent_and_keyless_records_move_on() -> None:
    store = Store()
    async with ScriptedBroker(store.handlers()) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 3
        producer = Producer(cluster, batch_bytes=1000)
        for _ in range(40):
            await producer.send("t", NewRecord(b"x" * 80, None, 1))
        assert [partition.partition for partition, _, _ in store.batches] == [0, 1, 2]
        assert {len(records) for _, _, records in store.batches} == {10}
        await producer.flush()
        assert sum(len(records) for _, _, records in store.batches) == 40
        assert store.batches[-1][1].base_sequence == 10


async def test_a_batch_that_is_sent_again_keeps_its_sequence() -> None:
    store = Store([6, 7, 0, 6])
    delivered = []
    async with ScriptedBroker(store.handlers()) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        producer = Producer(cluster, on_delivery=lambda *what: delivered.append(what))
        for _ in range(2):
            await producer.send("t", NewRecord(b"x", None, 1), 0)
            await producer.flush()
        sequences = [
            batches.check(r.topic_data[0].partition_data[0].records).base_sequence
            for r in broker.seen(ProduceRequest)
        ]
        assert sequences == [0, 0, 0, 1, 1]
        assert delivered == [(TopicPartition("t", 0), 7, 1)] * 2


async def test_a_duplicate_counts_as_stored() -> None:
    store = Store([46])
    async with ScriptedBroker(store.handlers()) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        producer = Producer(cluster)
        await producer.send("t", NewRecord(b"x", None, 1))
        await producer.flush()
        assert producer.records_sent == 1


async def test_without_acks_there_is_no_identity_and_no_answer() -> None:
    store = Store()
    async with ScriptedBroker(store.handlers()) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        producer = Producer(cluster, acks=0)
        await producer.send("t", NewRecord(b"x", None, 1))
        await producer.flush()
        await cluster.metadata([])  # the answer to this comes after the produce was read
        assert store.batches[0][1].producer_id == -1
        assert not broker.seen(InitProducerIdRequest)


async def test_what_is_refused_is_raised() -> None:
    store = Store([10])
    async with ScriptedBroker(store.handlers()) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        producer = Producer(cluster)
        await producer.send("t", NewRecord(b"x", None, 1))
        with pytest.raises(Refused, match="larger than partition t-0 takes") as caught:
            await producer.flush()
        assert "max.message.bytes" in caught.value.hint


async def test_a_leader_that_has_not_heard_of_its_partition_yet_is_asked_again() -> None:
    store = Store([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
    async with ScriptedBroker(store.handlers()) as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        producer = Producer(cluster)
        await producer.send("t", NewRecord(b"a"))
        await producer.flush()
        assert len(store.batches) == 1

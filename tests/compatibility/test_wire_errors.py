"""What no client library would send: the broker must refuse it with Kafka's code, and store nothing."""

from __future__ import annotations

import time
from typing import Any

import pytest

from headrace.protocol.batch import iterate
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from tests.broker_process import BrokerProcess
from tests.compatibility.clients.confluent import ConfluentClient
from tests.requests import fetch_records
from tests.wire import Wire

VERSION = 9


def batch(values: int = 1, size: int = 10, **identity: Any) -> bytearray:
    now = int(time.time() * 1000)
    return encode_batch([NewRecord(b"v" * size, key=b"k", timestamp=now) for _ in range(values)], **identity)


def produce(wire: Wire, topic: str, records: bytes | bytearray, *, acks: int = -1) -> tuple[int, int]:
    """The code and the offset that the broker answers."""
    partition = PartitionProduceData(index=0, records=memoryview(records))
    request = ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[partition])]
    )
    answer = wire.ask(request, VERSION, ProduceResponse).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


def new_producer(wire: Wire) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    deadline = time.monotonic() + 60
    # Kafka fetches its first block of ids only when somebody asks, and says so by an error.
    while (answer := wire.ask(request, 4, InitProducerIdResponse)).error_code:
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    producer_id: int = answer.producer_id
    return producer_id


@pytest.fixture
def ready(librdkafka: ConfluentClient, topic: str) -> str:
    librdkafka.create_topic(topic)
    return topic


def test_a_corrupt_checksum(broker: BrokerProcess, ready: str) -> None:
    damaged = batch()
    damaged[-1] ^= 0x40
    with Wire(broker.port) as wire:
        assert produce(wire, ready, damaged)[0] == ErrorCode.CORRUPT_MESSAGE
        assert fetch_records(wire, ready) == b""
        assert produce(wire, ready, batch()) == (0, 0)


def test_sequences_of_a_producer(broker: BrokerProcess, ready: str) -> None:
    with Wire(broker.port) as wire:
        identity = {"producer_id": new_producer(wire), "producer_epoch": 0}
        assert produce(wire, ready, batch(3, base_sequence=0, **identity)) == (0, 0)
        assert produce(wire, ready, batch(2, base_sequence=3, **identity)) == (0, 3)
        gap = produce(wire, ready, batch(base_sequence=9, **identity))
        assert gap[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        # The same batches again are acknowledged where they are, and not stored twice.
        assert produce(wire, ready, batch(3, base_sequence=0, **identity)) == (0, 0)
        assert produce(wire, ready, batch(2, base_sequence=3, **identity)) == (0, 3)
        assert [header.base_offset for _, header in iterate(fetch_records(wire, ready))] == [0, 3]

        newer = {**identity, "producer_epoch": 1}
        assert produce(wire, ready, batch(base_sequence=0, **newer)) == (0, 5)
        fenced = produce(wire, ready, batch(base_sequence=5, **identity))
        assert fenced[0] == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_topic_and_a_partition_that_are_not_there(broker: BrokerProcess, topic: str) -> None:
    with Wire(broker.port) as wire:
        assert produce(wire, topic, batch())[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_batch_that_is_too_large(broker: BrokerProcess, ready: str) -> None:
    with Wire(broker.port) as wire:
        assert produce(wire, ready, batch(size=1_048_588))[0] == ErrorCode.MESSAGE_TOO_LARGE
        assert produce(wire, ready, batch(size=1_048_000)) == (0, 0)


def test_acks_that_mean_nothing(broker: BrokerProcess, ready: str) -> None:
    with Wire(broker.port) as wire:
        assert produce(wire, ready, batch(), acks=2)[0] == ErrorCode.INVALID_REQUIRED_ACKS


def test_a_fetch_from_the_middle_brings_the_whole_batch(broker: BrokerProcess, ready: str) -> None:
    with Wire(broker.port) as wire:
        produce(wire, ready, batch(4))
        produce(wire, ready, batch(4))
        found = [header.base_offset for _, header in iterate(fetch_records(wire, ready, offset=6))]
        assert found == [4]


def test_answers_come_in_the_order_of_the_requests(broker: BrokerProcess, ready: str) -> None:
    with Wire(broker.port) as wire:
        key, version = ProduceRequest.API_KEY, VERSION
        bodies = []
        for number in range(20):
            partition = PartitionProduceData(index=0, records=memoryview(batch(number + 1)))
            request = ProduceRequest(
                acks=1, timeout_ms=5000, topic_data=[TopicProduceData(name=ready, partition_data=[partition])]
            )
            bodies.append(request.to_bytes(version))
        sent = [wire.send_body(key, version, body) for body in bodies]
        offsets = []
        for correlation_id in sent:
            answer = ProduceResponse.from_bytes(wire.receive_body(key, version, correlation_id), version)
            offsets.append(answer.responses[0].partition_responses[0].base_offset)
        assert offsets == [number * (number + 1) // 2 for number in range(20)]

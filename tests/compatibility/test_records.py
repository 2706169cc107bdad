"""Records through every client: what one sends is what it, and another, reads back."""

from __future__ import annotations

import threading
import time

import pytest

from headrace.protocol.batch import iterate
from headrace.protocol.compression import Compression
from tests.broker_process import BrokerProcess
from tests.compatibility.clients.client import Client, ClientFailure, Consumed, Headers, NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.requests import fetch_records
from tests.wire import Wire

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
OFFSET_OUT_OF_RANGE = 1
MESSAGE_TOO_LARGE = 10
INVALID_RECORD = 87

#: 12 hours ago: old enough to tell from "now", young enough for every limit on timestamps.
BASE_MS = int(time.time() * 1000) - 12 * 3600 * 1000


def contents(records: list[Consumed]) -> list[tuple[bytes | None, bytes | None, Headers]]:
    return [(record.key, record.value, record.headers) for record in records]


def numbered(count: int) -> list[NewRecord]:
    return [NewRecord(b"value %d " % i + b"x" * 200) for i in range(count)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_each_compression_arrives_as_sent_and_is_stored_so(
    broker: BrokerProcess, client: Client, librdkafka: ConfluentClient, topic: str, compression: str
) -> None:
    librdkafka.create_topic(topic)
    sent = numbered(3 if client.name == "kcat" else 20)
    client.produce(topic, sent, compression=compression)

    expected = [(record.key, record.value, record.headers) for record in sent]
    assert contents(client.consume(topic, len(sent))) == expected
    assert contents(librdkafka.consume(topic, len(sent))) == expected
    with Wire(broker.port) as wire:
        stored = fetch_records(wire, topic)
    codecs = {Compression(header.attributes & 7) for _, header in iterate(stored)}
    assert codecs == {Compression[compression.upper()]}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_acks_stores_all_records_once(
    client: Client, librdkafka: ConfluentClient, topic: str, acks: str
) -> None:
    librdkafka.create_topic(topic)
    sent = numbered(3)
    offsets = client.produce(topic, sent, acks=acks)
    if acks != "0" and "offsets" not in client.lacks:
        assert offsets == [0, 1, 2]
    found = librdkafka.consume(topic, 3)
    assert [record.value for record in found] == [record.value for record in sent]
    assert librdkafka.list_offsets(topic, 0, "latest")["offset"] == 3


def test_an_idempotent_producer(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic)
    sent = numbered(5)
    offsets = client.produce(topic, sent, idempotent=True)
    if "offsets" not in client.lacks:
        assert offsets == [0, 1, 2, 3, 4]
    assert [record.value for record in librdkafka.consume(topic, 5)] == [record.value for record in sent]


def test_headers_and_nulls(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic)
    sent = [
        NewRecord(b"v", b"k", (("a", b"1"), ("b", b"two"), ("a", b"again"))),
        NewRecord(b"no key", None),
        NewRecord(None, b"no value"),
    ]
    if "null key and value" not in client.lacks:
        sent.append(NewRecord(None, None))
    if "null header" not in client.lacks:
        sent.append(NewRecord(b"", b"", (("null", None), ("empty", b""))))
    client.produce(topic, sent)
    expected = [(record.key, record.value, record.headers) for record in sent]
    assert contents(librdkafka.consume(topic, len(sent))) == expected
    assert contents(client.consume(topic, len(sent))) == expected


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_a_record_of_a_megabyte(
    client: Client, librdkafka: ConfluentClient, topic: str, compression: str
) -> None:
    librdkafka.create_topic(topic, configs={"max.message.bytes": str(2 << 20)})
    value = bytes(range(256)) * 4096
    client.produce(topic, [NewRecord(value), NewRecord(b"after")], compression=compression)
    assert [record.value for record in client.consume(topic, 2)] == [value, b"after"]


def test_a_record_that_is_too_large(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic)
    with pytest.raises(ClientFailure) as failure:
        client.produce(topic, [NewRecord(b"x" * (2 << 20))])
    assert failure.value.code == MESSAGE_TOO_LARGE
    assert librdkafka.list_offsets(topic, 0, "latest")["offset"] == 0


def test_a_compacted_topic_refuses_a_record_without_a_key(
    client: Client, librdkafka: ConfluentClient, topic: str
) -> None:
    librdkafka.create_topic(topic, configs={"cleanup.policy": "compact"})
    client.produce(topic, [NewRecord(b"v", b"k")])
    with pytest.raises(ClientFailure) as failure:
        client.produce(topic, [NewRecord(b"v")])
    if "code of invalid record" not in client.lacks:
        assert failure.value.code == INVALID_RECORD
    assert librdkafka.list_offsets(topic, 0, "latest")["offset"] == 1


def test_a_topic_that_stamps_records_itself(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    # Not much earlier: franz-go counts a record's delivery timeout from its timestamp.
    client.produce(
        topic, [NewRecord(b"a", timestamp=before - 2000), NewRecord(b"b", timestamp=before - 1000)]
    )
    after = int(time.time() * 1000)
    for record in client.consume(topic, 2):
        assert before <= record.timestamp <= after


def test_reading_starts_where_it_is_told_to(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic)
    # One batch of ten, then one of five: offset 4 lies in the middle of a batch.
    for part in (range(10), range(10, 15)):
        librdkafka.produce(topic, [NewRecord(b"%d" % i, timestamp=BASE_MS + i * 1000) for i in part])

    assert [record.offset for record in client.consume(topic, 15)] == list(range(15))
    from_middle = client.consume(topic, 11, at="offset", value=4)
    assert [(record.offset, record.value) for record in from_middle] == [(i, b"%d" % i) for i in range(4, 15)]
    assert [record.timestamp for record in from_middle] == [BASE_MS + i * 1000 for i in range(4, 15)]
    at_time = client.consume(topic, 3, at="timestamp", value=BASE_MS + 6500)
    assert [record.offset for record in at_time] == [7, 8, 9]


def test_reading_from_the_end_gives_only_what_comes_later(
    client: Client, librdkafka: ConfluentClient, topic: str
) -> None:
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, numbered(3))
    found: list[Consumed] = []
    reader = threading.Thread(
        target=lambda: found.extend(client.consume(topic, 1, at="end", timeout_ms=20_000))
    )
    reader.start()
    while reader.is_alive():
        # Again and again, because no client tells when it has found the end.
        librdkafka.produce(topic, [NewRecord(b"late")])
        reader.join(0.3)
    assert [record.value for record in found] == [b"late"]
    assert found[0].offset >= 3


def test_an_offset_that_is_out_of_range(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, numbered(3))
    with pytest.raises(ClientFailure) as failure:
        client.consume(topic, 1, at="offset", value=1000)
    # librdkafka reports that no reset is allowed, and Kafka's own words in the text.
    assert failure.value.code == OFFSET_OUT_OF_RANGE or "out of range" in str(failure.value)


def test_producing_creates_the_topic(client: Client, librdkafka: ConfluentClient, topic: str) -> None:
    client.produce(topic, [NewRecord(b"first")])
    assert [record.value for record in client.consume(topic, 1)] == [b"first"]
    assert len(librdkafka.describe(topic)["partitions"]) == 1

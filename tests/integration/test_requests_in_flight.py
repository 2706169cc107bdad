"""Requests that overlap on one connection, and peers that misbehave beside it."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.cluster import Cluster
from tests.host import Stopwatch
from tests.requests import FETCH_BY_NAME, fetch_records, fetch_request
from tests.unit.log.material import whole_batches
from tests.wire import Wire, request_frame

PRODUCE_VERSION = 9
METADATA_VERSION = 9


def port_of(cluster: Cluster) -> int:
    return int(cluster.bootstrap.rpartition(":")[2])


@pytest.fixture
def synced() -> Iterator[Cluster]:
    """Every acknowledgement waits for a sync, so requests pile up behind it."""
    with Cluster({"log.flush.interval.messages": "1"}) as cluster:
        yield cluster


def make_topic(wire: Wire, name: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    answer = wire.ask(request, METADATA_VERSION, MetadataResponse)
    assert answer.topics[0].error_code == 0


def produce_body(topic: str, value: bytes) -> bytes:
    batch = bytes(encode_batch([NewRecord(value, None, time.time_ns() // 1_000_000)]))
    data = [PartitionProduceData(index=0, records=batch)]
    request = ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )
    return request.to_bytes(PRODUCE_VERSION)


def test_pipelined_produces_keep_their_bytes_and_their_order(synced: Cluster) -> None:
    # They arrive in one read, into the buffer that all connections share. A handler that kept a part of its
    # frame while its acknowledgement waited would store or answer what came later.
    values = [bytes([65 + number % 26]) * (50 + 40 * number) for number in range(50)]
    with Wire(port_of(synced)) as wire:
        make_topic(wire, "pipelined")
        frames = [
            request_frame(ApiKey.PRODUCE, PRODUCE_VERSION, 1000 + number, produce_body("pipelined", value))
            for number, value in enumerate(values)
        ]
        wire.socket.sendall(b"".join(frames))
        for number in range(len(values)):
            body = wire.receive_body(ApiKey.PRODUCE, PRODUCE_VERSION, 1000 + number)
            answer = ProduceResponse.from_bytes(body, PRODUCE_VERSION)
            found = answer.responses[0].partition_responses[0]
            assert (found.error_code, found.base_offset) == (0, number)
        stored = whole_batches(fetch_records(wire, "pipelined"))
    assert [record.value for _, records in stored for record in records] == values


def test_a_fetch_that_waits_is_answered_by_the_next_record() -> None:
    with Cluster() as cluster, Wire(port_of(cluster)) as reader, Wire(port_of(cluster)) as writer:
        make_topic(writer, "awaited")
        fetch = fetch_request("awaited", min_bytes=1, max_wait_ms=20_000).to_bytes(FETCH_BY_NAME)
        reader.socket.sendall(request_frame(ApiKey.FETCH, FETCH_BY_NAME, 1, fetch))
        reader.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            reader.socket.recv(1)
        reader.socket.settimeout(10)
        writer.send_body(ApiKey.PRODUCE, PRODUCE_VERSION, produce_body("awaited", b"at last"))
        answer = FetchResponse.from_bytes(reader.receive_body(ApiKey.FETCH, FETCH_BY_NAME, 1), FETCH_BY_NAME)
        stored = whole_batches(bytes(answer.responses[0].partitions[0].records or b""))
        assert [record.value for _, records in stored for record in records] == [b"at last"]


@pytest.mark.parametrize("together", [True, False], ids=["in one packet", "one after the other"])
def test_a_fetch_that_waits_does_not_hold_up_what_is_sent_behind_it(together: bool) -> None:
    """Answers are in order. Each task of Spark that reads to the end of a log would lose half a second."""
    with Cluster() as cluster, Wire(port_of(cluster)) as reader:
        make_topic(reader, "awaited")
        fetch = fetch_request("awaited", min_bytes=1, max_wait_ms=20_000).to_bytes(FETCH_BY_NAME)
        metadata = MetadataRequest(topics=[]).to_bytes(METADATA_VERSION)
        frames = [
            request_frame(ApiKey.FETCH, FETCH_BY_NAME, 1, fetch),
            request_frame(ApiKey.METADATA, METADATA_VERSION, 2, metadata),
        ]
        reader.socket.settimeout(10)
        if together:
            reader.socket.sendall(b"".join(frames))
        else:
            reader.socket.sendall(frames[0])
            time.sleep(0.05)
            reader.socket.sendall(frames[1])
        answer = FetchResponse.from_bytes(reader.receive_body(ApiKey.FETCH, FETCH_BY_NAME, 1), FETCH_BY_NAME)
        assert not answer.responses[0].partitions[0].records
        reader.receive_body(ApiKey.METADATA, METADATA_VERSION, 2)


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00" * 64,
        struct.pack(">i", 2**31 - 1) + b"rest",
        struct.pack(">ihhi", 8, 999, 0, 1),
        struct.pack(">ihhi", 60, ApiKey.PRODUCE, 9, 1) + b"\xff" * 52,
        struct.pack(">ihhi", 60, ApiKey.METADATA, 9, 1) + b"\xff" * 52,
    ],
    ids=["http", "zeros", "huge length", "unknown API", "broken produce", "broken metadata"],
)
def test_noise_costs_its_sender_the_connection_and_nobody_else_anything(
    headrace_shared_cluster: Cluster, noise: bytes
) -> None:
    port = port_of(headrace_shared_cluster)
    with Wire(port) as neighbour:
        make_topic(neighbour, "quiet")
        with socket.create_connection(("127.0.0.1", port), 5) as hostile:
            hostile.sendall(noise)
            hostile.settimeout(5)
            try:
                assert hostile.recv(1) == b"", "noise is not answered"
            except ConnectionResetError:
                pass
        number = neighbour.send_body(ApiKey.PRODUCE, PRODUCE_VERSION, produce_body("quiet", b"still here"))
        body = neighbour.receive_body(ApiKey.PRODUCE, PRODUCE_VERSION, number)
        assert (
            ProduceResponse.from_bytes(body, PRODUCE_VERSION).responses[0].partition_responses[0].error_code
            == 0
        )


def test_a_peer_that_trickles_holds_up_nobody(headrace_shared_cluster: Cluster) -> None:
    port = port_of(headrace_shared_cluster)
    slow = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(20)]
    try:
        with Wire(port) as neighbour:
            make_topic(neighbour, "brisk")
            for byte in struct.pack(">i", 50_000_000)[:3] + b"\x00":
                for peer in slow:
                    peer.send(bytes([byte]))
                watch = Stopwatch()
                body = produce_body("brisk", b"x")
                number = neighbour.send_body(ApiKey.PRODUCE, PRODUCE_VERSION, body)
                neighbour.receive_body(ApiKey.PRODUCE, PRODUCE_VERSION, number)
                assert watch.seconds < 10
        in_use = headrace_shared_cluster.call(
            lambda: headrace_shared_cluster.broker.network.request_memory.share.used_bytes
        )
        assert in_use <= len(slow) * 1024 * 1024, "a length that was announced is not memory that is held"
    finally:
        for peer in slow:
            peer.close()

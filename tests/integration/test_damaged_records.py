"""Damage on a broker that is alone: nobody else has the records, so the rest of them is served."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.testing.cluster import Cluster
from tests.integration.real_client import create, send_all
from tests.wire import Wire

TOPIC = "orders"
VALUES = [b"%d:" % number + b"x" * 1000 for number in range(2500)]
BATCHED = {"batch.num.messages": "50", "linger.ms": "20"}


def fetched(cluster: Cluster, offset: int) -> int:
    """The error of a fetch from `offset` on."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=TOPIC, partitions=[partition])]
    )
    with Wire(int(cluster.bootstrap.rpartition(":")[2])) as wire:
        answer = wire.ask(request, 11, FetchResponse)
    return int(answer.responses[0].partitions[0].error_code)


def read_from(cluster: Cluster, offset: int, count: int) -> list[tuple[int, bytes | None]]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    found: list[tuple[int, bytes | None]] = []
    with closing(consumer):
        consumer.assign([TopicPartition(TOPIC, 0, offset)])
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(count - len(found), 0.2):
                assert message.error() is None
                at = message.offset()
                assert at is not None
                found.append((at, message.value()))
    return found


def test_a_damaged_range_is_refused_and_everything_else_is_served(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        create(cluster.bootstrap, TOPIC, config={"segment.bytes": str(1 << 20)})
        send_all(cluster.bootstrap, TOPIC, VALUES, settings=BATCHED)
    first = sorted(tmp_path.rglob(f"{TOPIC}-0/*.log"))[0]
    content = bytearray(first.read_bytes())
    at = content.index(b"500:" + b"x" * 100) + 20
    content[at : at + 512] = bytes(512)
    first.write_bytes(content)
    with Cluster(directory=tmp_path) as cluster:
        assert fetched(cluster, 500) == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetched(cluster, 500) == ErrorCode.KAFKA_STORAGE_ERROR, "it stays so"
        assert fetched(cluster, 0) == ErrorCode.NONE
        before = read_from(cluster, 0, 450)
        assert before == list(enumerate(VALUES))[:450]
        behind = read_from(cluster, 551, len(VALUES) - 551)
        assert behind == list(enumerate(VALUES))[551:]
        send_all(cluster.bootstrap, TOPIC, [b"more"], settings=BATCHED)
        assert read_from(cluster, len(VALUES), 1) == [(len(VALUES), b"more")]

"""A topic as Arrow's columns, from a real broker and past it, beside confluent-kafka."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from headrace.arrow import open_topic, read_topic
from headrace.client.errors import ClientFailure
from headrace.core.errors import HeadraceError
from headrace.testing.cluster import Cluster
from tests.integration.real_client import SECONDS, create, eventually

TOPIC = "orders"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PROPERTIES = {
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.cleaner.backoff.ms": "50",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
SMALL = {"segment.bytes": "1048576", "internal.segment.bytes": "20000"}
Row = tuple[int, int, tuple[int, int], bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(PROPERTIES) as cluster:
        yield cluster


def fill(bootstrap: str, codec: str, records: int, *, keys: int = 100, transaction: str = "") -> Producer:
    given: dict[str, Any] = {"bootstrap.servers": bootstrap, "compression.type": codec}
    if transaction:
        given["transactional.id"] = transaction
    producer = Producer({"batch.num.messages": 40, "log_level": 0, **given})
    if transaction:
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
    for number in range(records):
        headers: list[tuple[str, str | bytes | None]] = [("a", b"%d" % number), ("b", None)]
        value = None if number % 7 == 0 else b"%08d" % number * (number % 20)
        key = None if number % 11 == 0 and keys == 100 else b"k%d" % (number % keys)
        producer.produce(TOPIC, value, key, partition=number % 2, headers=headers[: number % 3])
    assert producer.flush(SECONDS) == 0
    return producer


def by_confluent(bootstrap: str, isolation: str = "read_committed") -> list[Row]:
    """All of the topic, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "any",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    rows: list[Row] = []
    try:
        for partition in range(2):
            consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(SECONDS)
                assert message is not None
                if message.error():
                    break  # the end of the partition
                rows.append(_row(partition, message))
    finally:
        consumer.close()
    return rows


def _row(partition: int, message: Message) -> Row:
    offset, headers = message.offset(), message.headers()
    assert offset is not None
    pairs: Any = list(headers or [])
    kind, time = message.timestamp()
    return (partition, offset, (kind - 1, time), message.key(), message.value(), pairs)


def by_arrow(**source: Any) -> list[Row]:
    rows = read_topic(TOPIC, **source).read_all().to_pylist()
    found: list[Row] = [
        (
            row["partition"],
            row["offset"],
            (row["timestampType"], round(row["timestamp"].timestamp() * 1000)),
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"]],
        )
        for row in rows
    ]
    return sorted(found, key=lambda row: row[:2])


def files_have(cluster: Cluster, expected: list[Row], **options: Any) -> None:
    """The checkpoint that says what is committed comes a moment later."""
    eventually(lambda: by_arrow(files=cluster.directory, **options) == expected)


def test_every_codec_and_transactions(cluster: Cluster) -> None:
    create(cluster.bootstrap, TOPIC, 2, config=SMALL)
    for codec in CODECS:
        fill(cluster.bootstrap, codec, 200)
        fill(cluster.bootstrap, codec, 60, transaction="a").commit_transaction(SECONDS)
        fill(cluster.bootstrap, codec, 60, transaction="b").abort_transaction(SECONDS)
    expected = by_confluent(cluster.bootstrap)
    assert len(expected) == 5 * 260
    assert by_arrow(bootstrap=cluster.bootstrap) == expected
    files_have(cluster, expected)
    everything = by_confluent(cluster.bootstrap, "read_uncommitted")
    assert len(everything) == 5 * 320
    assert by_arrow(bootstrap=cluster.bootstrap, isolation="read_uncommitted") == everything
    files_have(cluster, everything, isolation="read_uncommitted")
    part = [row for row in expected if row[0] == 1 and 100 <= row[1] < 500]
    for source in ({"bootstrap": cluster.bootstrap}, {"files": cluster.directory}):
        assert by_arrow(**source, partitions=[1], start=100, end={1: 500}) == part
    late = expected[300][2][1]
    by_time = [row for row in expected if row[2][1] >= late]
    for source in ({"bootstrap": cluster.bootstrap}, {"files": cluster.directory}):
        assert by_arrow(**source, start_time=late) == by_time


def test_an_open_transaction_holds_up_what_follows_it(cluster: Cluster) -> None:
    create(cluster.bootstrap, TOPIC, 2)
    fill(cluster.bootstrap, "none", 20)
    open_one = fill(cluster.bootstrap, "lz4", 10, transaction="a")
    fill(cluster.bootstrap, "none", 20)
    before = by_arrow(bootstrap=cluster.bootstrap)
    assert len(before) == 20
    files_have(cluster, before)
    open_one.commit_transaction(SECONDS)
    files_have(cluster, by_confluent(cluster.bootstrap))
    assert len(by_arrow(bootstrap=cluster.bootstrap)) == 50


def test_a_compacted_topic(cluster: Cluster) -> None:
    create(cluster.bootstrap, TOPIC, 2, config={**SMALL, "cleanup.policy": "compact"})
    for codec in CODECS:
        fill(cluster.bootstrap, codec, 1000, keys=10)
    seen: list[int] = []

    def is_compacted() -> bool:
        seen.append(len(by_arrow(files=cluster.directory)))
        return seen[-1] < 3000

    eventually(is_compacted)
    # It may be compacted once more between the two.
    eventually(lambda: by_arrow(files=cluster.directory) == by_confluent(cluster.bootstrap))
    eventually(lambda: by_arrow(bootstrap=cluster.bootstrap) == by_confluent(cluster.bootstrap))


def test_while_the_broker_appends(cluster: Cluster) -> None:
    create(cluster.bootstrap, TOPIC, 2, config=SMALL)
    stop, appended = threading.Event(), threading.Event()

    def append() -> None:
        while not stop.wait(0.05):
            fill(cluster.bootstrap, "lz4", 100)
            appended.set()

    thread = threading.Thread(target=append)
    thread.start()
    counts: list[int] = []
    try:
        for number in range(6):
            assert appended.wait(SECONDS)
            appended.clear()
            from_files = number % 2 == 1
            rows = by_arrow(files=cluster.directory) if from_files else by_arrow(bootstrap=cluster.bootstrap)
            for partition in range(2):
                offsets = [row[1] for row in rows if row[0] == partition]
                assert offsets == list(range(len(offsets)))
            counts.append(len(rows))
    finally:
        stop.set()
        thread.join()
    assert counts[0] < counts[-2], "of the brokers"
    files_have(cluster, by_confluent(cluster.bootstrap))


def test_a_reader_that_is_left_early_and_a_loop_that_runs(cluster: Cluster) -> None:
    create(cluster.bootstrap, TOPIC, 2)
    fill(cluster.bootstrap, "none", 2000)
    topic = open_topic(TOPIC, bootstrap=cluster.bootstrap, batch_rows=10)

    async def in_a_notebook() -> Any:
        first = topic.reader().read_next_batch()
        return len(first) + topic.reader().read_all().num_rows

    assert asyncio.run(in_a_notebook()) > 2000
    assert not [each.name for each in threading.enumerate() if each.name == "headrace-arrow"]


def test_what_goes_wrong_is_said(cluster: Cluster) -> None:
    with pytest.raises(HeadraceError, match="nosuch"):
        read_topic("nosuch", bootstrap=cluster.bootstrap).read_all()
    with pytest.raises(ClientFailure, match="nothing listens at"):
        read_topic(TOPIC, bootstrap="127.0.0.1:1").read_all()

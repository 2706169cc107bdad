"""Topics with everything in them that a segment can have, and what a consumer reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from random import Random
from typing import Any, NamedTuple, TypedDict

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame

from headrace.arrow import read_topic
from tests.broker_process import HeadraceProcess
from tests.cluster_process import eventually
from tests.spark.connector import topics
from tests.spark.connector.topics import Sent

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 3
BEGIN_MS = 1_780_000_000_000
_TIERED = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "30000",
    "local.retention.bytes": "60000",
    "retention.ms": "-1",
}


class Bucket(TypedDict):
    """How readers find it."""

    tier: str
    endpoint: str
    region: str


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    value: bytes | None


def create(broker: HeadraceProcess, topic: str, partitions: int = PARTITIONS) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=_TIERED)])[topic].result(60)
    return topic


def send(broker: HeadraceProcess, topic: str, records: Sequence[Sent]) -> None:
    """A segment has several batches, so none of them may be as large."""
    for first in range(0, len(records), 60):
        topics.send(broker.bootstrap, topic, records[first : first + 60])


def fill(broker: HeadraceProcess, topic: str, rounds: int = 2, records: int = 120) -> int:
    """With every compression, with and without transactions, of which every third is given up. How many
    records a consumer gets."""
    count = 0
    for codec in CODECS:
        common = {"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 2}
        plain = Producer(common)
        bound = Producer({**common, "transactional.id": f"{topic}-{codec}"})
        bound.init_transactions(60)
        for number in range(rounds):
            count += _send(plain, topic, count, records)
            assert plain.flush(60) == 0
            bound.begin_transaction()
            is_kept = number % 3 != 1
            sent = _send(bound, topic, count, records)
            bound.flush(60)
            if is_kept:
                bound.commit_transaction(60)
                count += sent
            else:
                bound.abort_transaction(60)
    return count


def _send(producer: Producer, topic: str, first: int, records: int) -> int:
    for number in range(first, first + records):
        producer.produce(
            topic,
            None if number % 7 == 0 else Random(number).randbytes(number % 500),
            None if number % 5 == 0 else b"key-%d" % number,
            number % PARTITIONS,
            timestamp=BEGIN_MS + number * 10,
            headers=[("name", b"%d" % number), ("empty", None)] if number % 3 == 0 else None,
        )
        producer.poll(0)
    return records


def wait_tiered(broker: HeadraceProcess, topic: str, partitions: int = PARTITIONS) -> None:
    """Until only what its settings want is on the disk."""

    def is_small(partition: int) -> bool:
        found = (broker.log_dir / f"{topic}-{partition}").glob("*.log")
        return sum(path.stat().st_size for path in found) <= 95_000

    eventually(lambda: all(map(is_small, range(partitions))), 120, f"{topic} is in the bucket")


def consumed(broker: HeadraceProcess, topic: str, count: int) -> list[Row]:
    return sorted(map(_row_of, topics.read(broker.bootstrap, topic, count, PARTITIONS)))


def _row_of(message: Message) -> Row:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or ()
    return Row(
        topic, partition, offset, message.timestamp()[1], message.key(), tuple(headers), message.value()
    )


def rows(frame: DataFrame) -> list[Row]:
    """As `read_topic` and `read_segments` give them."""
    return sorted(
        Row(
            row.topic,
            row.partition,
            row.offset,
            _milliseconds(row.timestamp),
            None if row.key is None else bytes(row.key),
            tuple((each.key, None if each.value is None else bytes(each.value)) for each in row.headers),
            None if row.value is None else bytes(row.value),
        )
        for row in frame.collect()
    )


def read_by_arrow(topic: str, **where: Any) -> list[Row]:
    return sorted(
        Row(
            row["topic"],
            row["partition"],
            row["offset"],
            _milliseconds(row["timestamp"]),
            row["key"],
            tuple((each["key"], each["value"]) for each in row["headers"]),
            row["value"],
        )
        for row in read_topic(topic, **where).read_all().to_pylist()
    )


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def by_partition(found: Iterable[Row]) -> dict[int, list[int]]:
    offsets: dict[int, list[int]] = {}
    for row in found:
        offsets.setdefault(row.partition, []).append(row.offset)
    return offsets

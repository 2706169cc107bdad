"""Topics made, written and read by a client that is not Spark, and how Spark is told to read them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

_SECONDS = 60.0


def create(bootstrap: str, topic: str, partitions: int = 1, replicas: int = 1) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # Some records here are of another year: nobody may tidy them away.
    new = NewTopic(topic, partitions, replicas, config={"retention.ms": "-1"})
    admin.create_topics([new])[topic].result(_SECONDS)
    return topic


def grow(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(_SECONDS)
    deadline = time.monotonic() + _SECONDS
    while len(admin.list_topics(topic, timeout=30).topics[topic].partitions) < partitions:
        assert time.monotonic() < deadline, f"{topic} was grown, and the broker does not know it"
        time.sleep(0.05)


class Sent(NamedTuple):
    value: str
    partition: int = 0
    key: str | None = None
    timestamp_ms: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


def send(bootstrap: str, topic: str, records: Iterable[Sent]) -> None:
    """Returns when all are acknowledged; raises if one is not."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    hand_over(producer, topic, records)
    assert producer.flush(_SECONDS) == 0


def hand_over(producer: Producer, topic: str, records: Iterable[Sent]) -> None:
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            record.partition,
            on_delivery=_raise,
            timestamp=record.timestamp_ms,
            headers=list(record.headers) or None,
        )


def _raise(error: object, message: Message) -> None:
    assert error is None, error


def read(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[Message]:
    """That many records from the beginning, as a reader of committed ones sees them; fails after a minute."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reads", "isolation.level": "read_committed"}
    )
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        found: list[Message] = []
        while len(found) < count:
            some = consumer.consume(count - len(found), _SECONDS)
            assert some, f"{topic} has {len(found)} records of {count}"
            assert all(message.error() is None for message in some)
            found += some
        return found
    finally:
        consumer.close()


def batch(spark: SparkSession, bootstrap: str, options: Mapping[str, object]) -> DataFrame:
    return spark.read.format("kafka").options(**_options(bootstrap, options)).load()


def stream(spark: SparkSession, bootstrap: str, options: Mapping[str, object]) -> DataFrame:
    reader: DataStreamReader = spark.readStream.format("kafka")
    return reader.options(**_options(bootstrap, options)).load()


def _options(bootstrap: str, options: Mapping[str, object]) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, **{name: str(value) for name, value in options.items()}}


def values(frame: DataFrame) -> list[str]:
    """Sorted, so that one that is missing or twice there is seen."""
    return sorted(row.value for row in frame.selectExpr("cast(value as string) as value").collect())

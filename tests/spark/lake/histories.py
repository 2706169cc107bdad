"""Topics with all that a history can have, and what confluent-kafka reads of them."""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

SECONDS: Final = 60
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS: Final = 3
SMALL: Final = {"internal.segment.bytes": "6000"}
"""Segments."""
Row = tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...] | None]


def create(bootstrap: str, topic: str, config: dict[str, str], partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(SECONDS)


def fill(bootstrap: str, topic: str, codec: str, records: int, *, transaction: str = "") -> Producer:
    """The producer has sent all of it, and its transaction is open. Partition 2 gets hardly anything."""
    given: dict[str, Any] = {"bootstrap.servers": bootstrap, "compression.type": codec, "log_level": 0}
    if transaction:
        given["transactional.id"] = f"{topic}-{transaction}"
    producer = Producer({"batch.num.messages": 40, **given})
    if transaction:
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
    for number in range(records):
        headers: list[tuple[str, str | bytes | None]] = [("a", b"%d" % number), ("b", None)]
        value = None if number % 7 == 0 else b"%08d" % number * (number % 20)
        key = None if number % 11 == 0 else b"k%d" % number
        partition = 2 if number == 1 else number % 2
        producer.produce(topic, value, key, partition=partition, headers=headers[: number % 3])
    assert producer.flush(SECONDS) == 0
    return producer


def fill_with_everything(bootstrap: str, topic: str) -> None:
    """Every codec, and transactions of both ends among records without."""
    for codec in CODECS:
        fill(bootstrap, topic, codec, 300)
        fill(bootstrap, topic, codec, 90, transaction="a").commit_transaction(SECONDS)
        fill(bootstrap, topic, codec, 90, transaction="b").abort_transaction(SECONDS)
        fill(bootstrap, topic, codec, 90)


def by_confluent(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> list[Row]:
    """What is committed, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "any",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    rows: list[Row] = []
    try:
        for partition in range(partitions):
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
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
    pairs: Any = tuple(headers) if headers else None
    return (partition, offset, message.timestamp()[1], message.key(), message.value(), pairs)


def of_table(frame: DataFrame) -> list[Row]:
    """The same of a lake's table."""
    found = frame.withColumn("ms", sf.unix_millis("timestamp")).orderBy("partition", "offset").collect()
    return [
        (
            row.partition,
            row.offset,
            row.ms,
            _bytes(row.key),
            _bytes(row.value),
            None if row.headers is None else tuple((each.key, _bytes(each.value)) for each in row.headers),
        )
        for row in found
    ]


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)

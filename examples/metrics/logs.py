"""The two topics, what is in their records, and how long the brokers keep them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

LINES = "host-logs"
MINUTES = "host-minutes"
PARTITIONS = 6
MINUTE_MS = 60_000
SETTINGS = {
    # Lines go after a week. Brokers delete whole segments, so each is closed after an hour at the latest.
    LINES: {"cleanup.policy": "delete", "retention.ms": f"{7 * 24 * 3_600_000}", "segment.ms": "3600000"},
    # Of each minute only the last rollup counts, and that is kept for good.
    MINUTES: {"cleanup.policy": "compact", "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.2"},
}


@dataclass(frozen=True)
class Line:
    """Its host is the record's key, and its time the record's timestamp."""

    number: int
    level: str
    took_ms: int
    text: str

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, value: bytes) -> Line:
        return cls(**json.loads(value))


def partition_of(host: str) -> int:
    """Where librdkafka's default partitioner puts this key.

    Java's hashes by murmur2: set `partitioner` if both kinds of clients produce to one topic.
    """
    return zlib.crc32(host.encode()) % PARTITIONS


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, num_partitions=PARTITIONS, config=SETTINGS[name]) for name in (LINES, MINUTES)]
    for created in admin.create_topics(topics).values():
        created.result(30)


def read(bootstrap: str, starts: list[TopicPartition]) -> Iterator[Message]:
    """Every committed record of these partitions, from their offsets to where each ends now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign(starts)
    unread = {start.partition for start in starts}
    while unread:
        message = consumer.poll(30)
        if message is None:
            raise TimeoutError(f"nothing came from {starts[0].topic} for 30 seconds")
        if not message.error():
            yield message
        elif message.error().code() == KafkaError._PARTITION_EOF:
            unread.discard(message.partition())
        else:
            raise KafkaException(message.error())
    consumer.close()


def whole(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)]

"""A few verbs on librdkafka, so that a test says what it is about."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

SECONDS = 60.0


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def create(
    bootstrap: str,
    topic: str,
    partitions: int = 1,
    *,
    replicas: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    new = NewTopic(topic, partitions, replicas, config=dict(config or {}))
    client = admin(bootstrap)  # its futures end with it
    client.create_topics([new])[topic].result(SECONDS)


def set_config(bootstrap: str, kind: ResourceType, name: str, setting: str, value: str) -> None:
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    client = admin(bootstrap)
    client.incremental_alter_configs([resource])[resource].result(SECONDS)


def send(
    bootstrap: str,
    topic: str,
    values: Sequence[bytes],
    *,
    key: bytes | None = None,
    timestamp: int = 0,
    partition: int = 0,
    settings: Mapping[str, str] | None = None,
) -> list[KafkaError | None]:
    """One record per batch; what became of each."""
    outcomes: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcomes.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "batch.num.messages": 1,
            "message.timeout.ms": 5000,
            "message.max.bytes": 50_000_000,
            "retries": 0,
            **(settings or {}),
        }
    )
    for value in values:
        producer.produce(
            topic, value, key=key, partition=partition, timestamp=timestamp, on_delivery=delivered
        )
        producer.poll(0)
    producer.flush(SECONDS)
    return outcomes


def send_all(bootstrap: str, topic: str, values: Sequence[bytes], **kw: object) -> None:
    patient = {"message.timeout.ms": int(SECONDS * 1000), **kw.pop("settings", {})}  # type: ignore[dict-item]  # passed through
    assert send(bootstrap, topic, values, settings=patient, **kw) == [None] * len(values)  # type: ignore[arg-type]  # passed through


def read(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    with closing(consumer):
        consumer.assign([TopicPartition(topic, partition, 0)])
        messages: list[Message] = []
        deadline = time.monotonic() + SECONDS
        while len(messages) < count and time.monotonic() < deadline:
            for message in consumer.consume(count - len(messages), 0.2):
                if message.error() is not None:
                    raise KafkaException(message.error())
                messages.append(message)
        return messages


def read_all(bootstrap: str, topic: str, partition: int = 0) -> list[Message]:
    """Whatever is there, without waiting for more."""
    low, high = watermarks(bootstrap, topic, partition)
    return read(bootstrap, topic, high - low, partition)


def watermarks(bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    with closing(consumer):
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=SECONDS)
        return low, high


def eventually(condition: object, seconds: float = SECONDS) -> None:
    """Wait until a callable gives something true."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)

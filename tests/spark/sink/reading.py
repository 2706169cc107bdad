"""What a read_committed consumer that is not ours sees of a topic."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, TopicMetadata

_NONE = TopicMetadata()


class Seen(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


def create(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # Some rows have a time of their own: retention would take them away before they are read.
    new = NewTopic(topic, partitions, 1, config={"retention.ms": "-1"})
    admin.create_topics([new])[topic].result(60)
    deadline = time.monotonic() + 60
    while len(admin.list_topics(timeout=30).topics.get(topic, _NONE).partitions) < partitions:
        assert time.monotonic() < deadline, f"{topic} was made, and the broker does not know it"
        time.sleep(0.05)


def read(bootstrap: str, topic: str, *, seconds: float = 30.0, committed: bool = True) -> list[Seen]:
    """All that can be read up to the end of each partition. Fails if an open transaction is in the way."""
    ends = _ends(bootstrap, topic)
    consumer = _consumer(bootstrap, "read_committed" if committed else "read_uncommitted")
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in ends])
        found: list[Seen] = []
        left = {index for index, end in ends.items() if end > 0}
        deadline = time.monotonic() + seconds
        while left:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(_seen(message))
            for place in consumer.position([TopicPartition(topic, index) for index in left]):
                if place.offset >= ends[place.partition]:
                    left.discard(place.partition)
            if time.monotonic() > deadline:
                raise AssertionError(f"{topic}: partitions {sorted(left)} cannot be read to their end {ends}")
        return found
    finally:
        consumer.close()


def _seen(message: Any) -> Seen:
    return Seen(
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        message.timestamp()[1],
    )


def _consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            # The end of a partition is told by the answer to a fetch that found nothing more.
            "fetch.wait.max.ms": 10,
        }
    )


def _ends(bootstrap: str, topic: str) -> dict[int, int]:
    """Behind what is stored, committed or not: a commit is answered before its markers are written."""
    consumer = _consumer(bootstrap, "read_uncommitted")
    try:
        known = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        return {index: consumer.get_watermark_offsets(TopicPartition(topic, index))[1] for index in known}
    finally:
        consumer.close()

"""Reads topics to their stable end, and says when that is not their end: a transaction hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.chaos.workload import QUICK

Batch = dict[int, list[tuple[int, bytes]]]
"""(offset, value) by partition."""


class Hanging(Exception):
    """The stable end is not the end, though nobody has a transaction under way any more."""


def read_committed(bootstrap: str, topic: str, partitions: int, deadline: float) -> Iterator[Batch]:
    """Every record of every partition from the beginning, as it comes."""
    consumer = Consumer(
        {
            **QUICK,
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "error_cb": lambda _: None,
        }
    )
    try:
        ends = {one: high_watermark(bootstrap, topic, one, deadline) for one in range(partitions)}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        reached = dict.fromkeys(ends, 0)
        while any(reached[partition] < ends[partition] for partition in ends):
            if time.monotonic() > deadline:
                raise Hanging(f"read {topic} to {reached}, and the ends are {ends}")
            found: Batch = {}
            for message in consumer.consume(5000, 0.5):
                partition, offset, error = message.partition(), message.offset(), message.error()
                if partition is None or offset is None:
                    continue
                if error is None:
                    found.setdefault(partition, []).append((offset, message.value() or b""))
                    reached[partition] = offset + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    reached[partition] = offset
            if found:
                yield found
    finally:
        consumer.close()


def high_watermark(bootstrap: str, topic: str, partition: int, deadline: float) -> int:
    """The end of what is replicated, whether its transactions have ended or not."""
    asking = Consumer(
        {
            **QUICK,
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_uncommitted",
            "error_cb": lambda _: None,
        }
    )
    try:
        while True:
            try:
                return int(asking.get_watermark_offsets(TopicPartition(topic, partition), timeout=5)[1])
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
    finally:
        asking.close()

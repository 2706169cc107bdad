"""How much a job has written, seen from outside while it writes: also what is not committed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.spark.fire.job import Job
from tests.spark.fire.orders import Orders

#: Of every topic of a round.
PARTITIONS: Final = 3


@contextlib.contextmanager
def watching(job: Job, orders: Orders) -> Iterator[Callable[[], int]]:
    """A number that grows with each write."""
    if not job.writes_topic:
        yield lambda: _bytes_below(orders.tables)
        return
    consumer = Consumer(
        {"bootstrap.servers": orders.bootstrap, "group.id": "watch", "isolation.level": "read_uncommitted"}
    )
    ends = {TopicPartition(orders.target, index): 0 for index in range(PARTITIONS)}

    def written() -> int:
        for partition in ends:
            # While its leader is away nothing is written there.
            with contextlib.suppress(KafkaException):
                ends[partition] = consumer.get_watermark_offsets(partition, 5)[1]
        return sum(ends.values())

    try:
        yield written
    finally:
        consumer.close()


def _bytes_below(directory: Path) -> int:
    total = 0
    for path, _, files in os.walk(directory):
        for name in files:
            with contextlib.suppress(FileNotFoundError):  # moved meanwhile
                total += os.stat(os.path.join(path, name)).st_size
    return total

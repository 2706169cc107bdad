"""Warms a new broker along the paths that the cases take.

A cold JVM spends several times the CPU of a warm one on each request. Without this, a case that is run alone
would compare Headrace with a Kafka that is still compiling itself.
"""

from __future__ import annotations

from bench import load_generator
from bench.case import Side

SMALL_REQUESTS = 100_000
BATCHED_RECORDS = 3_000_000


def warm_up(side: Side) -> None:
    """Unreported load: single records, batches, and reading them back."""
    topic = side.fresh_name("warm")
    side.topics.create(topic)
    singles = side.scale.count(SMALL_REQUESTS)
    batched = side.scale.count(BATCHED_RECORDS)
    alone: dict[str, str | int] = {
        "acks": 1,
        "batch.num.messages": 1,
        "linger.ms": 0,
        "socket.nagle.disable": "true",
    }
    together: dict[str, str | int] = {"acks": 1, "batch.size": 16_384, "linger.ms": 5}
    bootstrap = side.broker.bootstrap
    load_generator.start_producer(bootstrap, topic, records=singles, properties=alone).result()
    load_generator.start_producer(bootstrap, topic, records=batched, properties=together).result()
    load_generator.start_consumer(bootstrap, topic, records=singles + batched).result()
    side.remove_topic(topic)

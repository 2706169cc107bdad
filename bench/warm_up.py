"""Warms a new broker along the paths that the cases take.

A cold JVM spends several times the CPU of a warm one on each request. Without this, a case that is run alone
would compare Headrace with a Kafka that is still compiling itself.
"""

from __future__ import annotations

from bench import load_generator
from bench.case import Side
from bench.cluster import BROKERS

SMALL_REQUESTS = 100_000
BATCHED_RECORDS = 3_000_000


ALONE: dict[str, str | int] = {"batch.num.messages": 1, "linger.ms": 0, "socket.nagle.disable": "true"}
TOGETHER: dict[str, str | int] = {"batch.size": 16_384, "linger.ms": 5}


def warm_up(side: Side) -> None:
    """Unreported load: single records, batches, and reading them back."""
    topic = side.fresh_name("warm")
    side.topics.create(topic)
    _load(side.broker.bootstrap, topic, side, "1")
    side.remove_topic(topic)


def warm_up_cluster(side: Side) -> None:
    """The same load on three replicas. Each broker leads one partition, so that each is warm as a leader."""
    topic = side.fresh_name("warm")
    cluster = side.cluster
    cluster.topics.create(topic, BROKERS, BROKERS)
    _load(cluster.bootstrap, topic, side, "all", BROKERS)
    cluster.remove_topic(topic)


def _load(bootstrap: str, topic: str, side: Side, acks: str, partitions: int = 1) -> None:
    singles = side.scale.count(SMALL_REQUESTS)
    batched = side.scale.count(BATCHED_RECORDS)
    for records, properties in ((singles, ALONE), (batched, TOGETHER)):
        load_generator.start_producer(
            bootstrap, topic, records=records, partitions=partitions, properties={"acks": acks, **properties}
        ).result()
    load_generator.start_consumer(bootstrap, topic, records=singles + batched, partitions=partitions).result()

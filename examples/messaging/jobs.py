"""The jobs, and the topics through which a job goes until it is done or given up."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient, NewTopic

JOBS = "invoices"
DEAD_LETTERS = "invoices-dead"
#: The workers' consumer group.
GROUP = "mailers"
#: A topic for each attempt, and how long a job waits in it. All jobs of a topic wait equally long, so the
#: first one that may be tried is always the oldest.
DELAY_SECONDS = {JOBS: 0.0, "invoices-retry-1s": 1.0, "invoices-retry-3s": 3.0}
#: Where a job goes when an attempt fails.
NEXT = dict(zip(DELAY_SECONDS, [*list(DELAY_SECONDS)[1:], DEAD_LETTERS], strict=True))
ATTEMPTS = len(DELAY_SECONDS)


@dataclass(frozen=True)
class Job:
    id: str
    #: How often the mail server will refuse it: what a real job would not know of itself.
    refusals: int

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, value: bytes) -> Job:
        return cls(**json.loads(value))


def arrived(error: KafkaError | None, _: Message) -> None:
    """Called for each record. What is raised here comes out of `poll` or `flush`."""
    if error is not None:
        raise KafkaException(error)


def create_topics(bootstrap: str) -> None:
    """More partitions than workers: each worker takes a share of them, and a new one takes over some."""
    topics = [NewTopic(name, num_partitions=6) for name in [*DELAY_SECONDS, DEAD_LETTERS]]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(topics).values():
        created.result(30)

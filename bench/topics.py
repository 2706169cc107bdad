"""Topics of the bench: made, counted and removed through librdkafka's admin client."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

TIMEOUT_S = 60.0
# A removed topic's files go at once instead of a minute later, when they would disturb another case.
client_properties: dict[str, str] = {}
"""What the admin client needs to connect. Empty unless brokers are protected."""
TOPIC_CONFIG = {"file.delete.delay.ms": "100"}


class Topics:
    """The topics of one broker, or of one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = self._connect()

    def _connect(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 2, **client_properties})

    def create(
        self, name: str, partitions: int = 1, replicas: int = 1, config: Mapping[str, str] | None = None
    ) -> float:
        """Make the topic; return the seconds until every partition has a leader, and all its replicas."""
        began = time.monotonic()
        topic = NewTopic(name, partitions, replicas, config={**TOPIC_CONFIG, **(config or {})})
        self._admin.create_topics([topic], operation_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)
        while time.monotonic() - began < TIMEOUT_S:
            found = self._admin.list_topics(name, timeout=TIMEOUT_S).topics[name].partitions
            if len(found) == partitions and all(
                one.leader >= 0 and len(one.isrs) == replicas for one in found.values()
            ):
                return time.monotonic() - began
            time.sleep(0.002)
        raise TimeoutError(f"not every partition of {name} found a leader")

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name], operation_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)

    def records(self, name: str, partitions: int = 1) -> int:
        """How many records the topic holds, by the end offsets of its partitions."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # its author left it without types
        wanted = {TopicPartition(name, number): latest for number in range(partitions)}
        give_up = time.monotonic() + TIMEOUT_S
        while True:
            answers = self._admin.list_offsets(wanted, request_timeout=TIMEOUT_S)
            try:
                return sum(answer.result(TIMEOUT_S).offset for answer in answers.values())
            except KafkaException:
                # The client sometimes insists that a topic has no leaders: a new one knows them.
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.5)
                self._admin = self._connect()

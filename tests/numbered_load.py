"""Numbers, one after the other, by an idempotent producer of librdkafka until it is told to stop."""

from __future__ import annotations

import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

RECORDS_A_SECOND = 500


class NumberedLoad:
    def __init__(self, bootstrap: str, topic: str, partitions: int, **more: Any) -> None:
        """`more`: the producer's arguments beside its configuration."""
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.timeout.ms": 30_000,
            **more.pop("config", {}),
        }
        self.acked: list[int] = []
        self.failed: list[str] = []
        self.sent = 0
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(config, **more)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._stop.is_set():
            while self.sent < (time.monotonic() - begin) * RECORDS_A_SECOND:
                self._send(self.sent)
                self.sent += 1
            self._producer.poll(0.005)

    def _send(self, number: int) -> None:
        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self.acked.append(number)
            else:
                self.failed.append(f"{number}: {error}")

        partition = number % self._partitions
        self._producer.produce(self._topic, str(number), partition=partition, on_delivery=delivered)

    def wait_for_more_than(self, acked: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.acked) <= acked:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(120) == 0


def consume(bootstrap: str, topic: str, partitions: int, count: int) -> list[int]:
    """So many, and what more there is."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: list[int] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found += [int(message.value() or b"") for message in consumer.consume(1000, 0.2)]
    found += [int(message.value() or b"") for message in consumer.consume(1000, 1.0)]
    consumer.close()
    return found

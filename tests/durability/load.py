"""An idempotent producer that never rests, and the ledger of what the broker has acknowledged to it."""

from __future__ import annotations

import threading
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

#: Records that may wait for their acknowledgement. Enough to keep the broker busy through a kill.
IN_FLIGHT = 3000


def value_of(partition: int, number: int) -> bytes:
    """Numbered, and of many sizes, so that a shift by a byte would show."""
    return b"%d:%d:" % (partition, number) + b"x" * (number * 37 % 700)


class Load:
    """Sends 0, 1, 2, ... to each partition. `acked` holds the offset that each number was given."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.sent = [0] * partitions
        self.acked: list[dict[int, int]] = [{} for _ in range(partitions)]
        self.failures: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "batch.size": 20_000,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )
        self._running = threading.Event()
        self._idle = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        while not self._ended.is_set():
            if not self._running.is_set() or len(self._producer) >= IN_FLIGHT:
                if not self._running.is_set():
                    self._idle.set()
                self._producer.poll(0.005)
                continue
            for partition in range(self.partitions):
                number = self.sent[partition]
                self.sent[partition] += 1
                self._producer.produce(
                    self.topic,
                    value_of(partition, number),
                    partition=partition,
                    on_delivery=partial(self._told, partition, number),
                )
            self._producer.poll(0)

    def _told(self, partition: int, number: int, error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is not None or offset is None:
            self.failures.append(f"{partition}:{number}: {error}")
        else:
            self.acked[partition][number] = offset

    def run(self) -> None:
        self._idle.clear()
        self._running.set()

    def pause(self) -> None:
        """Send no more, and wait until all that was sent has been acknowledged."""
        self._running.clear()
        assert self._idle.wait(10)
        left = self._producer.flush(60)
        assert left == 0, f"{left} records were not acknowledged within a minute"
        assert self.failures == []

    def close(self) -> None:
        self._running.clear()
        self._ended.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def stored(bootstrap: str, topic: str, partition: int, start: int, end: int) -> list[bytes | None]:
    """The values at the offsets from `start` up to `end`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "log_level": 0,
        }
    )
    values: list[bytes | None] = []
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)
        assert (low, high) == (0, end), f"partition {partition} holds {low} to {high}, not 0 to {end}"
        consumer.assign([TopicPartition(topic, partition, start)])
        while start + len(values) < end:
            messages = consumer.consume(min(5000, end - start - len(values)), timeout=20)
            assert messages, f"nothing came at {start + len(values)} of {end}"
            for message in messages:
                failure = message.error()
                assert failure is None, failure
                assert message.offset() == start + len(values)
                values.append(message.value())
    finally:
        consumer.close()
    return values

"""The input of a job: each record is unlike any other, so that one too many is seen, and one too few."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Message, Producer

_SECONDS: Final = 120.0
_FILLING: Final = "." * 60


class Feeder:
    """Everything it gave is acknowledged by all replicas when `feed` returns."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, batch_bytes: int) -> None:
        self.topic = topic
        self.count = 0
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "batch.size": batch_bytes,
            }
        )

    def feed(self, records: int) -> None:
        for number in range(self.count, self.count + records):
            value = f"{number:08}{_FILLING}"
            while True:
                try:
                    self._producer.produce(
                        self.topic, value, str(number), number % self._partitions, on_delivery=_acknowledged
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self.count += records
        assert self._producer.flush(_SECONDS) == 0


def _acknowledged(error: object, message: Message) -> None:
    assert error is None, error

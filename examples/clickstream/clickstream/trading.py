"""The shop is open: what happens in it goes into the topics, through producers that are audited."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from typing import Any

from confluent_kafka import KafkaException, Producer

from clickstream.auditing import WINDOW_SECONDS
from clickstream.shop import Shop
from clickstream.topics import ORDERS, PAGE_VIEWS
from headrace.audit.confluent import audited
from headrace.audit.settings import AuditSettings


class Trading:
    """A day of the shop, as fast as you like. `stored` counts by topic what brokers have acknowledged."""

    def __init__(self, shop: Shop, bootstrap: str, seconds: float, peak_rate: float) -> None:
        self.shop = shop
        self.bootstrap = bootstrap
        self.seconds = seconds
        self.peak_rate = peak_rate
        self.stored: Counter[str] = Counter()
        self.began = 0.0

    def run(self, stop: threading.Event) -> None:
        self.began = time.monotonic()
        with self._producer("web") as web, self._producer("till") as till:
            producers = {PAGE_VIEWS: web, ORDERS: till}
            steps, elapsed = 0, 0.0
            while elapsed < self.seconds and not stop.is_set():
                elapsed = self.elapsed  # the last look lies beyond the end: nobody is left outside
                due = self.steps_until(elapsed)
                for _ in range(steps, due):
                    for record in self.shop.step():
                        producers[record.topic].produce(record.topic, record.value, record.key)
                steps = due
                for producer in producers.values():
                    producer.poll(0)
                time.sleep(0.02)

    def _producer(self, name: str) -> Any:
        """An ordinary producer of confluent-kafka, but for the first line."""
        producer = audited(Producer, AuditSettings(name, window_seconds=WINDOW_SECONDS, report_seconds=1))
        return producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "on_delivery": self._stored,
            }
        )

    def _stored(self, error: Any, message: Any) -> None:
        if error is not None:
            raise KafkaException(error)
        self.stored[message.topic()] += 1

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began if self.began else 0.0

    def steps_until(self, elapsed: float) -> int:
        """The rate is a wave that begins and ends at a quarter of its peak: few come in the night."""
        share = min(elapsed / self.seconds, 1.0)
        wave = 0.625 * share - 0.375 * math.sin(2 * math.pi * share) / (2 * math.pi)
        return int(wave * self.seconds * self.peak_rate)

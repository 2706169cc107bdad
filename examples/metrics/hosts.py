"""Hosts that ship what they log. On a real host this is a log shipper; librdkafka is inside most of them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from logs import LINES, MINUTE_MS, Line


def arrived(error: KafkaError | None, _: Message) -> None:
    """Called for each record. What is raised here comes out of `poll` or `flush`."""
    if error is not None:
        raise KafkaException(error)


@dataclass
class Shipped:
    """A host's own count, which never went through a topic."""

    host: str
    lines: int = 0
    errors: int = 0


@dataclass(frozen=True)
class Hosts:
    bootstrap: str
    names: list[str]
    #: It was cut off, and ships each minute three minutes late.
    slow: str
    minutes: int
    lines_a_minute: int
    begin_ms: int
    seconds_a_minute: float

    def ship(self) -> list[Shipped]:
        """All of them at the same time."""
        with ThreadPoolExecutor(len(self.names)) as pool:
            return list(pool.map(self.ship_one, self.names))

    def ship_one(self, host: str) -> Shipped:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "on_delivery": arrived,
                "enable.idempotence": True,  # nothing twice, and in order, whatever is sent again
                "compression.type": "zstd",
                "linger.ms": 100,  # logs are in no hurry: few large batches
            }
        )
        shipped, late = Shipped(host), 3 if host == self.slow else 0
        for now in range(self.minutes + 3):
            minute = now - late
            if 0 <= minute < self.minutes:
                for at_ms, line in self.log(host, minute):
                    producer.produce(LINES, line.encode(), host, timestamp=at_ms)
                    shipped.lines += 1
                    shipped.errors += line.level == "ERROR"
            producer.poll(0)
            time.sleep(self.seconds_a_minute)
        if producer.flush(60):
            raise RuntimeError(f"{host}: not every line was acknowledged")
        return shipped

    def log(self, host: str, minute: int) -> Iterator[tuple[int, Line]]:
        """What the host did in this minute: when, and the line."""
        chance = random.Random(f"{host} {minute}")
        for n in range(self.lines_a_minute):
            at_ms = self.begin_ms + minute * MINUTE_MS + n * MINUTE_MS // self.lines_a_minute
            level = "ERROR" if chance.random() < 0.02 else "INFO"
            took_ms = chance.randrange(5, 50) + (400 if level == "ERROR" else 0)
            yield (
                at_ms,
                Line(minute * self.lines_a_minute + n, level, took_ms, f"GET /cart/{chance.randrange(999)}"),
            )

"""Adds up lines by host and minute: `python rollups.py BOOTSTRAP`.

Exactly once: rollups and the offsets of the lines in them are one transaction. The program keeps no file. At
each start it reads its rollups back from their topic, and goes on behind the lines that are in them. A line
that comes late is added to its own minute, whose rollup is then written again.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict, dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition
from logs import LINES, MINUTE_MS, MINUTES, PARTITIONS, Line, read, whole

GROUP = "rollups"


@dataclass
class Rollup:
    host: str
    minute: int
    lines: int = 0
    errors: int = 0
    took_ms: int = 0
    slowest_ms: int = 0

    def add(self, line: Line) -> None:
        self.lines += 1
        self.errors += line.level == "ERROR"
        self.took_ms += line.took_ms
        self.slowest_ms = max(self.slowest_ms, line.took_ms)


def read_rollups(bootstrap: str) -> dict[str, Rollup]:
    """The last one of each host and minute. Compaction may have removed others already, or not yet."""
    return {
        message.key().decode(): Rollup(**json.loads(message.value()))
        for message in read(bootstrap, whole(MINUTES))
    }


class Aggregator:
    def __init__(self, bootstrap: str) -> None:
        self.stopping = False
        self.producer = Producer(
            # A second program with this id ends the transactions of the first: only one can write.
            {"bootstrap.servers": bootstrap, "transactional.id": "rollups", "transaction.timeout.ms": 30_000}
        )
        self.producer.init_transactions(60)
        self.rollups = read_rollups(bootstrap)
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )
        lines = [TopicPartition(LINES, partition) for partition in range(PARTITIONS)]
        begin = self.consumer.committed(lines, 30)
        for partition in begin:
            partition.offset = max(partition.offset, 0) if partition.offset >= 0 else OFFSET_BEGINNING
        self.consumer.assign(begin)

    def run(self) -> None:
        while not self.stopping:
            messages = self.consumer.consume(1000, timeout=0.2)
            if messages:
                self.add(messages)
        self.consumer.close()

    def add(self, messages: list[Message]) -> None:
        """If anything fails in here, let the program end: the next one knows exactly where to go on."""
        changed: dict[str, Rollup] = {}
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            host, minute = message.key().decode(), message.timestamp()[1] // MINUTE_MS
            key = f"{host} {minute}"
            changed[key] = self.rollups.setdefault(key, Rollup(host, minute))
            changed[key].add(Line.decode(message.value()))
        self.producer.begin_transaction()
        for key, rollup in changed.items():
            self.producer.produce(MINUTES, json.dumps(asdict(rollup)), key)
        read_to = [place for place in self.consumer.position(self.consumer.assignment()) if place.offset >= 0]
        self.producer.send_offsets_to_transaction(read_to, self.consumer.consumer_group_metadata())
        self.producer.commit_transaction()

    def stop(self, *_: object) -> None:
        self.stopping = True


if __name__ == "__main__":
    aggregator = Aggregator(sys.argv[1])
    signal.signal(signal.SIGTERM, aggregator.stop)
    aggregator.run()

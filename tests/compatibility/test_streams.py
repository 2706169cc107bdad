"""Kafka Streams counts words exactly once, while its process and its broker are killed."""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.apache_kafka import CACHE, java_command
from tests.broker_process import BrokerProcess
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.conftest import StartBroker

WORDS = tuple(f"word-{number}" for number in range(7))
LINES_PER_PART = 300
SECONDS = 90
#: A transaction that a killed process left open holds up its successor: notice its timeout soon.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


class Application:
    """The word count as a process."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        command = java_command(CACHE / "streams-program", CACHE / "streams")
        arguments = (bootstrap, "word-count", "from", "to", str(directory))
        with (directory.parent / "streams.out").open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "WordCount", *arguments], stdin=subprocess.PIPE, stdout=output, stderr=output
            )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()


class Counts:
    """What a reader of committed records has seen come out, for each word. It never reads anything twice."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: dict[bytes, list[int]] = defaultdict(list)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
            }
        )
        self._consumer.assign([TopicPartition("to", at, OFFSET_BEGINNING) for at in range(2)])

    def wait_for(self, total: int) -> None:
        deadline = time.monotonic() + SECONDS
        while (found := sum(map(len, self.seen.values()))) < total:
            assert time.monotonic() < deadline, f"{found} of {total} counts came out"
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.seen[message.key() or b""].append(int(message.value() or b""))

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def broker_of_streams(new_broker: StartBroker, tmp_path: Path) -> Iterator[BrokerProcess]:
    with new_broker(tmp_path / "broker", PROPERTIES) as process:
        yield process


def test_counts_survive_kills_of_both_sides(broker_of_streams: BrokerProcess, tmp_path: Path) -> None:
    broker = broker_of_streams
    admin = ConfluentClient(broker.bootstrap)
    admin.create_topic("from", 2)
    admin.create_topic("to", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 5})

    def write_part() -> None:
        for number in range(LINES_PER_PART):
            producer.produce("from", " ".join(WORDS), partition=number % 2)
        producer.poll(0)

    per_part = LINES_PER_PART * len(WORDS)
    application = Application(broker.bootstrap, tmp_path / "state")
    counts = Counts(broker.bootstrap)
    try:
        write_part()
        counts.wait_for(per_part // 3)
        application.kill()
        application = Application(broker.bootstrap, tmp_path / "state")
        write_part()
        counts.wait_for(per_part + per_part // 3)
        broker.kill()
        write_part()
        broker.start()
        counts.wait_for(3 * per_part)
        assert producer.flush(10) == 0
    finally:
        application.kill()
        counts.close()
    assert counts.seen == {word.encode(): list(range(1, 3 * LINES_PER_PART + 1)) for word in WORDS}

"""Leaders move all the time while librdkafka writes: each record is there once, no producer has a new epoch.

    python -m tests.chaos.leader_moves --seconds 120

A client that is told OUT_OF_ORDER_SEQUENCE_NUMBER takes a new epoch, and may write a second time
what is under way.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Assigned

from headrace.client.cluster import Cluster as Client
from headrace.client.reassignments import Election, elect_leaders, reassign
from headrace.core.ids import TopicPartition
from headrace.testing.cluster import Cluster
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, find_classpath
from tests.zookeeper_server import CACHE

TOPIC = "moved"
PARTITIONS = 6
BROKERS = (1, 2, 3)
RECORDS_A_SECOND = 500


class Epochs(logging.Handler):
    """What librdkafka says of new epochs."""

    def __init__(self) -> None:
        super().__init__()
        self.raised: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if "epoch bump" in said:
            self.raised.append(said)


class Load:
    """Numbers, one after the other, until it is told to stop."""

    def __init__(self, bootstrap: str, epochs: Epochs) -> None:
        logger = logging.getLogger("leader_moves")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(epochs)
        logger.propagate = False
        config = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 2}
        self._producer = Producer({**config, "debug": "eos"}, logger=logger)
        self.sent = 0
        self.failed: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stop.is_set():
            while self.sent < (time.monotonic() - begun) * RECORDS_A_SECOND:
                partition = self.sent % PARTITIONS
                self._producer.produce(
                    TOPIC, str(self.sent), partition=partition, on_delivery=self._delivered
                )
                self.sent += 1
            self._producer.poll(0.005)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed.append(str(error))

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(120) == 0


async def _move(bootstrap: str, seconds: float, source: random.Random) -> int:
    moves, deadline = 0, time.monotonic() + seconds
    async with Client(bootstrap, client_id="leader-moves") as cluster:
        while time.monotonic() < deadline:
            orders = {
                TopicPartition(TOPIC, index): source.sample(BROKERS, len(BROKERS))
                for index in range(PARTITIONS)
            }
            await reassign(cluster, orders)
            await asyncio.sleep(0.05)
            elected, _ = await elect_leaders(cluster, Election.PREFERRED)
            moves += len(elected)
            await asyncio.sleep(source.random() * 0.3)
    return moves


def _consume(bootstrap: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([Assigned(TOPIC, index, 0) for index in range(PARTITIONS)])
    found: list[int] = []
    deadline = time.monotonic() + 120
    while len(found) < count and time.monotonic() < deadline:
        found += [int(message.value() or b"") for message in consumer.consume(1000, 0.2)]
    found += [int(message.value() or b"") for message in consumer.consume(1000, 1.0)]  # more than was sent?
    consumer.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.environ[CLASSPATH_VARIABLE] = find_classpath(CACHE)
    epochs = Epochs()
    with tempfile.TemporaryDirectory() as directory, Cluster(brokers=3, directory=directory) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
        load = Load(cluster.bootstrap, epochs)
        try:
            moves = asyncio.run(_move(cluster.bootstrap, given.seconds, random.Random(given.seed)))
        finally:
            load.end()
        counts = Counter(_consume(cluster.bootstrap, load.sent))
    twice = [number for number, times in counts.items() if times > 1]
    missing = load.sent - len(counts)
    print(
        f"{moves} leaderships moved, {load.sent} records, {len(load.failed)} not acknowledged,"
        f" {missing} missing, {len(twice)} twice, {len(epochs.raised)} times a new epoch"
    )
    for said in epochs.raised[:3]:
        print(said)
    return 1 if twice or missing or load.failed or epochs.raised else 0


if __name__ == "__main__":
    sys.exit(main())

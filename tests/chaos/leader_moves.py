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
import time
from collections import Counter

from headrace.client.cluster import Cluster as Client
from headrace.client.reassignments import Election, elect_leaders, reassign
from headrace.core.ids import TopicPartition
from headrace.testing.cluster import Cluster
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, find_classpath
from tests.numbered_load import NumberedLoad, consume
from tests.zookeeper_server import CACHE

TOPIC = "moved"
PARTITIONS = 6
BROKERS = (1, 2, 3)


class Epochs(logging.Handler):
    """What librdkafka says of new epochs."""

    def __init__(self) -> None:
        super().__init__()
        self.raised: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if "epoch bump" in said:
            self.raised.append(said)


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.environ[CLASSPATH_VARIABLE] = find_classpath(CACHE)
    epochs = Epochs()
    with tempfile.TemporaryDirectory() as directory, Cluster(brokers=3, directory=directory) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)
        logger = logging.getLogger("leader_moves")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(epochs)
        logger.propagate = False
        load = NumberedLoad(cluster.bootstrap, TOPIC, PARTITIONS, config={"debug": "eos"}, logger=logger)
        try:
            moves = asyncio.run(_move(cluster.bootstrap, given.seconds, random.Random(given.seed)))
        finally:
            load.end()
        counts = Counter(consume(cluster.bootstrap, TOPIC, PARTITIONS, load.sent))
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

"""Thousands of offsets, translated from a topic with every kind of gap, into one with records of others.

    python -m tests.spark.mirror.campaign --source kafka --target headrace --offsets 10000

The source is compacted while it is written, by transactions of which some abort; somebody else writes into
the target between the batches; the pieces are merged as they are after many batches. Each record says in a
header which one it is, and its producer was told at which offset it was stored. So what is right is known
without either side of the mirror.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.spark import session
from headrace.spark.mirror import config as configs
from headrace.spark.mirror import job
from headrace.spark.mirror.reading import Reading
from headrace.spark.sink.datasource import register
from tests.apache_kafka import CACHE
from tests.both_brokers import TARGETS
from tests.spark import shared_classes
from tests.spark.mirror.ends import Pair, exact
from tests.spark.sink.reading import read

_TOPIC: Final = "compacted"
_PARTITIONS: Final = 3
_ID: Final = "n"
_BROKER: Final = {"log.cleaner.backoff.ms": "200", "log.retention.check.interval.ms": "1000"}
_COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}


class Source:
    """Who writes, and what he was told of where each record is."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self._bootstrap, self._dice = bootstrap, random.Random(seed)
        self.places: dict[int, tuple[int, int]] = {}
        self._count = 0

    def write(self, records: int) -> None:
        while records > 0:
            size = min(records, self._dice.randint(1, 400))
            commits = self._dice.random() < 0.7
            name = f"writer-{commits}"
            producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": name})
            producer.init_transactions(60)
            producer.begin_transaction()
            for _ in range(size):
                self._count += 1
                gone = self._dice.random() < 0.05
                producer.produce(
                    _TOPIC,
                    key=b"%d" % self._dice.randrange(2_000),
                    value=None if gone else b"x" * self._dice.randrange(100),
                    headers=[(_ID, b"%d" % self._count)],
                    partition=self._dice.randrange(_PARTITIONS),
                    on_delivery=self._delivered(self._count, commits),
                )
            producer.flush(60)
            if commits:
                producer.commit_transaction(60)
            else:
                producer.abort_transaction(60)
            records -= size

    def _delivered(self, number: int, counts: bool):  # type: ignore[no-untyped-def]  # a callback of librdkafka's
        def note(error: object, message: Message) -> None:
            assert error is None, error
            if counts:
                self.places[number] = (message.partition() or 0, message.offset() or 0)

        return note


def _foreign(bootstrap: str, dice: random.Random) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(dice.randrange(30)):
        producer.produce(_TOPIC, key=b"foreign", value=b"foreign", partition=dice.randrange(_PARTITIONS))
    producer.flush(60)


def pairs_of(source: Source, target: str) -> dict[int, list[Pair]]:
    """Where each record of the source is on the target, by partition and in order."""
    found: dict[int, list[Pair]] = {number: [] for number in range(_PARTITIONS)}
    for record in read(target, _TOPIC, seconds=600):
        number = dict(record.headers).get(_ID)
        if number is not None:
            partition, offset = source.places[int(number)]
            assert partition == record.partition
            found[partition].append(Pair(offset, record.offset))
    for pairs in found.values():
        assert pairs == sorted(set(pairs)), "twice, or out of order"
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.mirror.campaign", description=__doc__)
    parser.add_argument("--source", choices=list(TARGETS), default="kafka")
    parser.add_argument("--target", choices=list(TARGETS), default="headrace")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--offsets", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    dice = random.Random(given.seed)
    shared_classes.make()
    job._LEAST_TO_MERGE = 8  # type: ignore[misc]  # as after hundreds of batches
    with tempfile.TemporaryDirectory(prefix="headrace-translation-") as name:
        directory = Path(name)
        with (
            TARGETS[given.source](directory / "source", _BROKER) as source_broker,
            TARGETS[given.target](directory / "target", {}) as target_broker,
        ):
            source, target = source_broker.bootstrap, target_broker.bootstrap
            topic = NewTopic(_TOPIC, _PARTITIONS, 1, config=_COMPACTED)
            admin = AdminClient({"bootstrap.servers": source})
            admin.create_topics([topic])[_TOPIC].result(120)
            text = f"""
            [source]
            "bootstrap.servers" = "{source}"
            [target]
            "bootstrap.servers" = "{target}"
            [mirror]
            name = "campaign"
            settings = false
            discover = "1ms"
            [[topics]]
            name = "{_TOPIC}"
            """
            config = configs.parse(text, directory / "mirror.toml")
            spark = session(
                "campaign",
                master="local[2]",
                jar_directory=CACHE / "spark-jars",
                warehouse=directory / "warehouse",
                extra={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"},
            )
            spark.sparkContext.setLogLevel("ERROR")
            register(spark)
            try:
                writer = Source(source, given.seed)
                for number in range(given.batches):
                    writer.write(given.records // given.batches)
                    time.sleep(0.7)  # a segment is closed, and cleaned
                    job.run(spark, config, once=True)
                    _foreign(target, dice)
                    _say(f"batch {number + 1}: {len(writer.places)} records committed")
            finally:
                spark.stop()
            return _judge(writer, config, source, target, dice, given.offsets)


def _judge(
    writer: Source, config: configs.MirrorConfig, source: str, target: str, dice: random.Random, offsets: int
) -> int:
    pairs = pairs_of(writer, target)
    mirrored = {(partition, pair.source) for partition, found in pairs.items() for pair in found}
    missing = [
        each for each in read(source, _TOPIC, seconds=600) if (each.partition, each.offset) not in mirrored
    ]
    reading = asyncio.run(Reading.of(config))
    wrong = 0
    for _ in range(offsets):
        partition = dice.randrange(_PARTITIONS)
        offset = dice.randrange(pairs[partition][-1].source + 2)
        found, expected = reading.translate(_TOPIC, partition, offset), exact(pairs[partition], offset)
        if found != expected:
            wrong += 1
            _say(f"partition {partition}, offset {offset}: {found}, not {expected}")
    pieces = {place.partition: len(each.pieces) for place, each in reading.translation.partitions.items()}
    runs = sum(
        len(each.runs().counts) for part in reading.translation.partitions.values() for each in part.pieces
    )
    _say(
        f"{offsets} offsets, {wrong} wrong; {len(mirrored)} of {len(writer.places)} records mirrored, "
        f"the others had been compacted away; {len(missing)} missing; {runs} runs in {pieces} pieces"
    )
    return 1 if wrong or missing else 0


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


if __name__ == "__main__":
    sys.exit(main())

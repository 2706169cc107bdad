"""A backfill whose driver is killed with -9 at drawn moments and started again, into each format.

    python -m tests.spark.lake.backfill_fire --rounds 5 --kills 4

Its own state says when it has begun to work; the kill comes up to `--span` seconds later. After the last kill
it ends, the lake goes on, and the table is compared with what confluent-kafka reads. A round that fails says
its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from headrace.spark import session
from headrace.spark.lake import config as configs
from headrace.spark.lake import job
from headrace.spark.lake.tables.opening import open_table
from tests.apache_kafka import CACHE
from tests.broker_process import HeadraceProcess
from tests.cluster_process import eventually
from tests.spark import shared_classes
from tests.spark.lake.histories import SMALL, by_confluent, create, fill, of_table
from tests.spark.lake.killed_backfill import KilledBackfill

FORMATS = ("parquet", "delta", "iceberg")
_START_SECONDS = 600.0
_SEGMENTS = {**SMALL, "internal.segment.bytes": "1000000"}


class Outcome(NamedTuple):
    table_format: str
    seed: int
    rows: int
    kills: int
    """Those that found it at work."""
    steps: int
    """That were written down when it was killed, summed."""
    is_right: bool


class Fire:
    def __init__(self, spark: SparkSession, broker: HeadraceProcess, directory: Path, span: float) -> None:
        self.spark = spark
        self.broker = broker
        self.directory = directory
        self.span = span

    def fill(self, topic: str, records: int) -> None:
        create(self.broker.bootstrap, topic, _SEGMENTS)
        for number in range(4):
            codec = ("none", "lz4", "zstd", "snappy")[number]
            fill(self.broker.bootstrap, topic, codec, records // 5)
            fill(self.broker.bootstrap, topic, "none", records // 40, transaction="a").commit_transaction(60)
            fill(self.broker.bootstrap, topic, "none", records // 40, transaction="b").abort_transaction(60)
        checkpoint = self.broker.log_dir / "replication-offset-checkpoint"
        eventually(lambda: f"{topic} 0 " in checkpoint.read_text(), 120, "what is committed is written down")

    def round(self, topic: str, table_format: str, seed: int, kills: int) -> Outcome:
        chosen = random.Random(seed)
        directory = self.directory / f"{table_format}-{seed}"
        directory.mkdir()
        location = str(self.directory / "lake") if table_format == "iceberg" else str(directory / "lake")
        killed = KilledBackfill(self.broker, topic, directory, table_format, location, task_bytes=1_000_000)
        struck = steps = 0
        for _ in range(kills):
            with killed.start() as driver:
                began, until = time.time(), time.monotonic() + _START_SECONDS
                while driver.status is None and not self._works(killed, began) and time.monotonic() < until:
                    time.sleep(0.02)
                time.sleep(chosen.random() * self.span)
                struck += driver.status is None
                driver.kill()
            steps += len(list((killed.notes / "steps").glob("[0-9]*")))
        killed.finish()
        config = configs.load(killed.config)
        job.run(self.spark, config, once=True)
        found = of_table(open_table(self.spark, config, topic).read())
        expected = by_confluent(self.broker.bootstrap, topic)
        return Outcome(table_format, seed, len(found), struck, steps, found == expected)

    @staticmethod
    def _works(killed: KilledBackfill, began: float) -> bool:
        """The lock is written anew by each start, once it has a session."""
        lock = killed.notes.with_name("backfill-spark.lock")
        first = killed.notes.with_name("backfill.lock")
        return lock.exists() and first.stat().st_mtime >= began


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.lake.backfill_fire", description=__doc__)
    parser.add_argument("--format", action="append", choices=FORMATS, help="may be repeated; default: all")
    parser.add_argument("--rounds", type=int, default=1, help="for each format")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; each next one has the next")
    parser.add_argument("--kills", type=int, default=4, help="in a round")
    parser.add_argument("--span", type=float, default=6.0, help="seconds of work within which a kill comes")
    parser.add_argument("--records", type=int, default=100_000)
    given = parser.parse_args(arguments)
    shared_classes.make()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="headrace-backfill-") as name:
        directory = Path(name)
        spark = session(
            "judge",
            master="local[1]",
            jar_directory=CACHE / "spark-jars",
            warehouse=directory / "lake",
            extra={
                "spark.ui.enabled": "false",
                "spark.sql.shuffle.partitions": "2",
                "spark.driver.memory": "2g",
                "spark.driver.extraJavaOptions": shared_classes.short_lived(),
            },
        )
        spark.sparkContext.setLogLevel("ERROR")
        try:
            with HeadraceProcess(directory / "broker", {}) as broker:
                fire = Fire(spark, broker, directory, given.span)
                fire.fill("orders", given.records)
                for seed in range(given.seed, given.seed + given.rounds):
                    for table_format in given.format or FORMATS:
                        outcome = fire.round("orders", table_format, seed, given.kills)
                        wrong += not outcome.is_right
                        print(outcome, flush=True)
        finally:
            spark.stop()
    print(f"{wrong} of {given.rounds * len(given.format or FORMATS)} rounds wrong", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())

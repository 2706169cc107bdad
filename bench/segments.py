"""`python -m bench.segments`: sealed segments read past the broker, beside the connector, to nowhere.

What counts is records for each second of processor time, of all processes together: Spark, its Python workers
and the broker. All sides read the same topics in turns, after one run each that does not count. Records have
100 bytes or 1 KB that do not compress to nothing; each topic is written by Spark with the compression of its
name.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

from bench import spark_runs
from bench.broker import Broker
from bench.process_cost import cpu_seconds, host_busy_seconds
from bench.topics import Topics
from headrace.spark import read_segments, read_topic

PARTITIONS = 4
SIZES = (100, 1000)
CODECS = ("none", "lz4", "zstd")
_CHECKPOINT_SECONDS = 7.0
"""After which the broker has said how much of its files is committed."""


@dataclass(frozen=True)
class Run:
    topic: str
    side: str
    records: int
    seconds: float
    cpu_seconds: float
    others_cores: float
    """That whatever else is on the machine took meanwhile."""

    @property
    def rate(self) -> float:
        return self.records / self.cpu_seconds


@dataclass
class Bench:
    spark: SparkSession
    broker: Broker
    data: Path

    def fill(self, size: int, codec: str, records: int) -> str:
        topic = f"r{size}-{codec}"
        Topics(self.broker.bootstrap).create(topic, PARTITIONS)
        digests = ", ".join(f"sha2(concat(id, '-{at}'), 256)" for at in range(size // 64 + 1))
        rows = self.spark.range(records, numPartitions=PARTITIONS).selectExpr(
            "cast(string(id) as binary) as key",
            f"cast(substr(concat({digests}), 1, {size}) as binary) as value",
            f"cast(id % {PARTITIONS} as int) as partition",
        )
        writer = rows.write.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        writer.option("kafka.compression.type", codec).option("topic", topic).save()
        return topic

    def sides(self, topic: str) -> dict[str, Callable[[], DataFrame]]:
        def connector() -> DataFrame:
            reader = self.spark.read.format("kafka").option("includeHeaders", "true")
            return (
                reader.option("kafka.bootstrap.servers", self.broker.bootstrap)
                .option("subscribe", topic)
                .load()
            )

        return {
            "connector": connector,
            "read_topic": lambda: read_topic(self.spark, topic, kafka=self.broker.bootstrap),
            "read_segments": lambda: read_segments(self.spark, topic, files=self.data),
        }

    def run(self, topic: str, side: str, frame: Callable[[], DataFrame], records: int) -> Run:
        busy, cpu, began = host_busy_seconds(), self._cpu(), time.monotonic()
        frame().write.format("noop").mode("overwrite").save()
        seconds, used = time.monotonic() - began, self._cpu() - cpu
        others = (host_busy_seconds() - busy - used) / seconds
        return Run(topic, side, records, seconds, used, max(0.0, others))

    def _cpu(self) -> float:
        """This process started Spark and the broker, and they started the rest."""
        return cpu_seconds(os.getpid())


def measure(bench: Bench, size: int, codec: str, records: int, runs: int) -> list[Run]:
    topic = bench.fill(size, codec, records)
    time.sleep(_CHECKPOINT_SECONDS)
    sides = bench.sides(topic)
    for side, frame in sides.items():
        if (found := frame().count()) != records:
            raise SystemExit(f"{topic}: {side} has {found} records instead of {records}")
    done = []
    for _ in range(runs):
        done += [bench.run(topic, side, frame, records) for side, frame in sides.items()]
    Topics(bench.broker.bootstrap).delete(topic)
    return done


def report(done: Sequence[Run]) -> None:
    base = median(run.rate for run in done if run.side == "connector")
    for side in dict.fromkeys(run.side for run in done):
        rates = sorted(run.rate for run in done if run.side == side)
        others = median(run.others_cores for run in done if run.side == side)
        print(
            f"{done[0].topic:12} {side:14} {median(rates):10,.0f} rec/CPU s ({rates[0]:,.0f} to "
            f"{rates[-1]:,.0f}), {median(rates) / base:.2f} of the connector; {others:.1f} cores of others",
            flush=True,
        )


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.segments", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of values, all topics together")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, help="where to write the runs as JSON")
    options = parser.parse_args(words)
    done: list[Run] = []
    with spark_runs.beside_broker("bench-segments") as (spark, broker, _):
        bench = Bench(spark, broker, broker.directory / "logs")
        share = int(options.gigabytes * 1e9) // (len(SIZES) * len(CODECS))
        for size in SIZES:
            for codec in CODECS:
                found = measure(bench, size, codec, share // size, options.runs)
                report(found)
                done += found
                spark_runs.keep(done, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

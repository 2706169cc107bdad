"""What exactly once costs: the sink `headrace` beside Spark's own sink, which is at least once, in one run.

    python -m bench.sink --runs 5

A query copies a topic of 2 M records into another, to its end, by one sink and then by the other, in turns,
on a session that is warm. The time is that of the whole query, from its start to its end: with the plans, the
decisions and the ends of the transactions. Afterwards the rows of the copy are counted as a read_committed
consumer sees them. Headrace grants transactions that never time out; Apache Kafka does not, so there the sink
also computes checksums.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from tests.both_brokers import TARGETS
from tests.broker_process import BrokerProcess

from bench.process_cost import TICKS_PER_SECOND, cpu_seconds, family
from bench.spark_runs import keep, session_for
from bench.topics import Topics

PARTITIONS: Final = 4
SINKS: Final = ("kafka", "headrace")
GRANT: Final = {"transaction.two.phase.commit.enable": "true"}


@dataclass
class Run:
    target: str
    size: int
    batches: int
    sink: str
    rows: int
    seconds: float
    spark_cpu_s: float
    """Of the driver, its JVM and its Python workers."""
    broker_cpu_s: float

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


class Copying:
    """One broker, one session, one input of each size."""

    def __init__(
        self, spark: SparkSession, target: str, broker: BrokerProcess, directory: Path, rows: int
    ) -> None:
        self._spark, self._target, self._broker = spark, target, broker
        self._bootstrap = broker.bootstrap
        self._directory, self._rows = directory, rows
        self._topics = Topics(broker.bootstrap)
        self._count = 0

    def fill(self, size: int) -> str:
        topic = f"input-{size}"
        self._topics.create(topic, PARTITIONS)
        rows = self._spark.range(self._rows, numPartitions=PARTITIONS).selectExpr(
            "cast(id as string) as key",
            f"rpad(cast(id as string), {size}, 'abcdefgh') as value",
            f"cast(id % {PARTITIONS} as int) as partition",
        )
        rows.write.format("kafka").option("kafka.bootstrap.servers", self._bootstrap).option(
            "topic", topic
        ).save()
        return topic

    def copy(self, source: str, size: int, batches: int, sink: str) -> Run:
        self._count += 1
        topic = f"output-{self._count}"
        self._topics.create(topic, PARTITIONS)
        rows = (
            self._spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", -(-self._rows // batches))
            .load()
        )
        writer = (
            rows.select("key", "value")
            .writeStream.format(sink)
            .option("kafka.bootstrap.servers", self._bootstrap)
            .option("topic", topic)
            .option("checkpointLocation", str(self._directory / "checkpoints" / self._target / topic))
            .trigger(availableNow=True)
        )
        before, broker_before, began = self._spark_cpu(), cpu_seconds(self._broker.pid), time.monotonic()
        query = writer.start()
        query.awaitTermination()
        seconds = time.monotonic() - began
        after = self._spark_cpu()
        # Workers that were idle for a minute are gone by now, and did nothing for this query.
        of_spark = sum(ticks - before.get(pid, 0.0) for pid, ticks in after.items())
        of_broker = cpu_seconds(self._broker.pid) - broker_before
        run = Run(self._target, size, batches, sink, self._rows, seconds, of_spark, of_broker)
        found = self._committed(topic).count()
        if found != self._rows:
            raise RuntimeError(f"{sink} was given {self._rows} rows, and {found} can be read")
        self._topics.delete(topic)
        return run

    def _spark_cpu(self) -> dict[int, float]:
        """CPU seconds of this process and of all below it, but for the broker."""
        found = {}
        for pid in set(family(os.getpid())) - set(family(self._broker.pid)):
            try:
                clocks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            except (FileNotFoundError, ProcessLookupError):
                continue
            found[pid] = sum(map(int, clocks)) / TICKS_PER_SECOND
        return found

    def _committed(self, topic: str) -> DataFrame:
        read = self._spark.read.format("kafka").option("kafka.bootstrap.servers", self._bootstrap)
        return read.option("subscribe", topic).option("kafka.isolation.level", "read_committed").load()


def measure(spark: SparkSession, target: str, given: argparse.Namespace, directory: Path) -> list[Run]:
    found: list[Run] = []
    with TARGETS[target](directory / target, GRANT if target == "headrace" else {}) as broker:
        copying = Copying(spark, target, broker, directory, given.rows)
        for size in given.size:
            source = copying.fill(size)
            for batches in given.batches:
                for number in range(given.runs + 1):  # the first is the warm-up
                    for sink in SINKS:
                        run = copying.copy(source, size, batches, sink)
                        print(f"{'warm-up' if not number else ''} {run} {run.rate:,.0f}/s", flush=True)
                        found += [run] if number else []
    return found


def table(runs: Sequence[Run]) -> str:
    """Medians, and the ratio run by run; and Spark's CPU for a million rows, which noise moves less."""
    lines = [
        "| broker | record | batches | Spark's own | headrace | ratio (from, to) | its CPU | our CPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for target, size, batches in dict.fromkeys((run.target, run.size, run.batches) for run in runs):
        same = [run for run in runs if (run.target, run.size, run.batches) == (target, size, batches)]
        own, ours = ([run for run in same if run.sink == sink] for sink in SINKS)
        ratios = [one.rate / other.rate for one, other in zip(ours, own, strict=True)]
        cells = [
            target,
            f"{size} B",
            str(batches),
            *(f"{statistics.median(run.rate for run in each) / 1000:.0f} k/s" for each in (own, ours)),
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            *(
                f"{statistics.median(run.spark_cpu_s / run.rows * 1e6 for run in each):.1f} s"
                for each in (own, ours)
            ),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sink", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--target", nargs="*", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--output", type=Path, help="a file for the runs, as JSON")
    given = parser.parse_args()
    with session_for("bench-sink") as (spark, directory):
        runs = [run for target in given.target for run in measure(spark, target, given, directory)]
    print(table(runs))
    keep(runs, given.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())

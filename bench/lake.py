"""`python -m bench.lake`: the lake beside the bare connector, and Headrace beside Apache Kafka, in one run.

Each job loads the same topic into a new directory of Parquet files by `availableNow`. The bare job is the
connector and Spark's own file sink, as anybody would write them. All sides take turns, so that whatever else
the machine does meets all of them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from bench import apache_kafka, results
from bench.broker import Broker
from bench.headrace_broker import Headrace
from bench.topics import Topics
from headrace.spark import session
from headrace.spark.decoding.formats import Format
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake import job
from headrace.spark.lake.config import LakeConfig, TopicRule

PARTITIONS = 4
SCHEMA = "id bigint, name string, price double, at timestamp"
TARGET = 0.9


@dataclass(frozen=True)
class Load:
    """What the records are."""

    name: str
    format: Format
    value: str
    """As an expression of Spark's SQL over `id`."""


def _filler(size: int) -> str:
    """Text that does not compress to nothing: digests of the number, as long as is asked for."""
    digests = ", ".join(f"sha2(concat(id, '-{at}'), 256)" for at in range(size // 64 + 1))
    return f"substr(concat({digests}), 1, {size})"


LOADS = (
    Load("bytes-100", Format.BYTES, _filler(100)),
    Load("bytes-1k", Format.BYTES, _filler(1000)),
    Load(
        "json-100",
        Format.JSON,
        "to_json(named_struct('id', id, 'name', substr(sha2(string(id), 256), 1, 40), 'price', id / 7, "
        "'at', timestamp_seconds(1700000000 + id)))",
    ),
    Load(
        "json-1k",
        Format.JSON,
        f"to_json(named_struct('id', id, 'name', {_filler(900)}, 'price', id / 7, "
        "'at', timestamp_seconds(1700000000 + id)))",
    ),
)


def filled_values(spark: SparkSession, load: Load, records: int, tasks: int) -> DataFrame:
    rows = spark.range(records, numPartitions=tasks)
    return rows.selectExpr("cast(string(id) as binary) as key", f"cast({load.value} as binary) as value")


@dataclass
class Bench:
    spark: SparkSession
    directory: Path
    records: int
    serial: int = 0

    def fill(self, broker: Broker, load: Load) -> str:
        Topics(broker.bootstrap).create(load.name, PARTITIONS)
        values = filled_values(self.spark, load, self.records, PARTITIONS)
        writer = values.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        writer.option("topic", load.name).save()
        return load.name

    def place(self) -> Path:
        self.serial += 1
        return self.directory / f"run-{self.serial}"

    def bare(self, broker: Broker, load: Load) -> float:
        where = self.place()
        began = time.monotonic()
        frame = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", load.name)
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .load()
        )
        writer = (
            by_hand(frame, load).writeStream.format("parquet").option("checkpointLocation", f"{where}/state")
        )
        writer.option("path", f"{where}/table").trigger(availableNow=True).start().awaitTermination()
        return self._judged(time.monotonic() - began, self.spark.read.parquet(f"{where}/table"), where)

    def lake(self, broker: Broker, load: Load) -> float:
        where = self.place()
        schema = None if load.format is Format.BYTES else SCHEMA
        config = LakeConfig(
            kafka=KafkaProperties({"bootstrap.servers": broker.bootstrap}),
            topics=(TopicRule(name=load.name, format=load.format, schema=schema),),
            format="parquet",
            location=f"file://{where}",
            state=f"file://{where}/state",
        )
        began = time.monotonic()
        job.run(self.spark, config, once=True)
        seconds = time.monotonic() - began
        return self._judged(seconds, self.spark.read.parquet(f"{where}/{load.name}"), where)

    def _judged(self, seconds: float, table: DataFrame, where: Path) -> float:
        """Records a second, if they are all there."""
        found = table.select("offset").count()
        if found != self.records:
            raise SystemExit(f"{where}: {found} records instead of {self.records}")
        shutil.rmtree(where)
        return self.records / seconds


def by_hand(frame: DataFrame, load: Load) -> DataFrame:
    """What a user of Spark would write."""
    if load.format is Format.BYTES:
        return frame
    kept = [name for name in frame.columns if name not in ("value", "timestampType")]
    value = sf.from_json(frame["value"].cast("string"), SCHEMA)
    return frame.withColumn("typed", value).select(*kept, "typed.*")


def measure(
    bench: Bench, brokers: Sequence[Broker], load: Load, runs: int, warm: int
) -> dict[str, list[float]]:
    for broker in brokers:
        print(f"{load.name:10} fill {broker.name}", flush=True)
        bench.fill(broker, load)
    jobs: dict[str, Callable[[Broker, Load], float]] = {"bare": bench.bare, "lake": bench.lake}
    sides = [(f"{name} on {broker.name}", job_, broker) for broker in brokers for name, job_ in jobs.items()]
    rates: dict[str, list[float]] = {name: [] for name, _, _ in sides}
    for number in range(warm + runs):
        for name, job_, broker in sides:
            rate = job_(broker, load)
            print(f"{load.name:10} {name:24} run {number - warm:2}: {rate:10,.0f} rec/s", flush=True)
            if number >= warm:
                rates[name].append(rate)
    for broker in brokers:
        Topics(broker.bootstrap).delete(load.name)
    return rates


def report(load: Load, rates: dict[str, list[float]], brokers: Sequence[Broker]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []

    def compare(ours: str, theirs: str, target: float, *, within_spread: bool = False) -> None:
        ratio = median(rates[ours]) / median(rates[theirs])
        each = [a / b for a, b in zip(rates[ours], rates[theirs], strict=True)]
        near = within_spread and max(each) >= target
        verdict = "reached" if ratio >= target else "within the spread" if near else "missed"
        print(
            f"{load.name:10} {ours} / {theirs}: {ratio:.2f} ({min(each):.2f} to {max(each):.2f}), "
            f"{median(rates[ours]):,.0f} to {median(rates[theirs]):,.0f} rec/s; target {target}: {verdict}"
        )
        rows.append({"load": load.name, "ours": ours, "theirs": theirs, "ratio": ratio, "runs": each})

    for broker in brokers:
        compare(f"lake on {broker.name}", f"bare on {broker.name}", TARGET)
    if len(brokers) > 1:
        for name in ("bare", "lake"):
            compare(f"{name} on {brokers[0].name}", f"{name} on {brokers[1].name}", 1.0, within_spread=True)
    return rows


def _keep(rows: list[dict[str, object]], options: argparse.Namespace) -> None:
    """After each load: what is measured is not lost with what comes after it."""
    if options.output is not None:
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        document = {"time": moment, "records": options.records, "machine": results.machine(), "rows": rows}
        options.output.write_text(json.dumps(document, indent=2) + "\n")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lake", description=__doc__)
    parser.add_argument(
        "loads", nargs="*", metavar="LOAD", help=f"of {', '.join(load.name for load in LOADS)}"
    )
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    # After one run Java is still compiling: the second is twice as fast.
    parser.add_argument("--warm", type=int, default=3, help="runs before those that count")
    parser.add_argument("--headrace-only", action="store_true", help="leave Apache Kafka out")
    parser.add_argument("--jars", type=Path, default=apache_kafka.ROOT / ".cache" / "spark-jars")
    parser.add_argument("--output", type=Path, help="where to write the figures as JSON")
    options = parser.parse_args(words)
    wanted = [load for load in LOADS if not options.loads or load.name in options.loads]
    directory = Path(tempfile.mkdtemp(prefix="bench-lake-", dir=apache_kafka.ROOT / ".cache"))
    brokers = [Broker(Headrace(), directory / "headrace")]
    if not options.headrace_only:
        brokers.append(Broker(apache_kafka.ApacheKafka(apache_kafka.find_jars()), directory / "kafka"))
    extra = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
    }
    rows: list[dict[str, object]] = []
    try:
        for broker in brokers:
            broker.start()
        spark = session(
            "bench", master="local[2]", jar_directory=options.jars, extra=extra, warehouse=directory
        )
        spark.sparkContext.setLogLevel("ERROR")
        bench = Bench(spark, directory, options.records)
        for load in wanted:
            rows += report(load, measure(bench, brokers, load, options.runs, options.warm), brokers)
            _keep(rows, options)
        spark.stop()
    finally:
        for broker in brokers:
            broker.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

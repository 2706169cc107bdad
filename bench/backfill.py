"""`python -m bench.backfill`: history past the brokers beside the lake by Spark's connector, of one topic.

    python -m bench.backfill --megabytes 1000 --runs 3 bytes-100 bytes-1k

Both load all of a topic into a new directory of Parquet files, in turns: `headrace lake run --once` from the
broker, and `headrace lake backfill` from the broker's directory, on the same two cores. Counted is the CPU
of all processes: driver, Java, Python workers and broker. The runs that warm up do not count. It says whether
the records are decoded by the compiled module, without which a backfill is a matter of Python.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from bench import results
from bench.broker import Broker
from bench.lake import LOADS, Load, filled_values
from bench.process_cost import cpu_seconds
from bench.spark_runs import beside_broker
from bench.topics import Topics
from headrace.arrow.columns import RecordColumns, column_maker
from headrace.arrow.files import find_histories
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake import job as lake_job
from headrace.spark.lake.backfill import job as backfill_job
from headrace.spark.lake.config import LakeConfig, TopicRule
from headrace.spark.segments.place import Directories

PARTITIONS = 4
SEGMENT_BYTES = 128 * 1024 * 1024
COMMITTED_SECONDS = 120.0
SIZES = {"bytes-100": 100, "bytes-1k": 1000}
LAKE, BACKFILL = "lake run", "lake backfill"


@dataclass(frozen=True)
class Run:
    load: str
    way: str
    records: int
    seconds: float
    cpu_seconds: float
    machine_load: float
    """Of the last minute, when it ended."""

    @property
    def per_cpu_second(self) -> float:
        return self.records / self.cpu_seconds


class Bench:
    def __init__(self, spark: SparkSession, broker: Broker, directory: Path) -> None:
        self.spark = spark
        self.broker = broker
        self.directory = directory
        self.logs = broker.directory / "logs"
        self._serial = 0

    def fill(self, load: Load, records: int) -> None:
        config = {"segment.bytes": str(SEGMENT_BYTES)}
        Topics(self.broker.bootstrap).create(load.name, PARTITIONS, config=config)
        values = filled_values(self.spark, load, records, PARTITIONS)
        writer = values.write.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        writer.option("topic", load.name).save()
        until = time.monotonic() + COMMITTED_SECONDS
        while sum(each.end for each in find_histories([self.logs], load.name)) < records:
            if time.monotonic() > until:
                raise TimeoutError("the broker does not write down what is committed")
            time.sleep(0.2)

    def run(self, load: Load, way: str, records: int) -> Run:
        self._serial += 1
        where = self.directory / f"run-{self._serial}"
        config = LakeConfig(
            kafka=KafkaProperties({"bootstrap.servers": self.broker.bootstrap}),
            topics=(TopicRule(name=load.name),),
            format="parquet",
            location=f"file://{where}",
            state=f"file://{where}/state",
        )
        ways: dict[str, Callable[[], object]] = {
            LAKE: lambda: lake_job.run(self.spark, config, once=True),
            BACKFILL: lambda: backfill_job.run(self.spark, config, load.name, Directories((str(self.logs),))),
        }
        cpu, began = cpu_seconds(os.getpid()), time.monotonic()
        ways[way]()
        seconds, used = time.monotonic() - began, cpu_seconds(os.getpid()) - cpu
        found = self.spark.read.parquet(f"{where}/{load.name}").select("offset").count()
        if found != records:
            raise SystemExit(f"{way}: {found} records instead of {records}")
        shutil.rmtree(where)
        return Run(load.name, way, records, seconds, used, os.getloadavg()[0])


def report(runs: Sequence[Run]) -> None:
    for load in dict.fromkeys(run.load for run in runs):
        rates = {
            way: [run.per_cpu_second for run in runs if (run.load, run.way) == (load, way)]
            for way in (LAKE, BACKFILL)
        }
        for way, each in rates.items():
            print(
                f"{load:10} {way:14} {median(each):11,.0f} rec/CPU s ({min(each):,.0f} to {max(each):,.0f})"
            )
        print(f"{load:10} {median(rates[BACKFILL]) / median(rates[LAKE]):.2f} times", flush=True)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.backfill", description=__doc__)
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"of {', '.join(SIZES)}")
    parser.add_argument("--megabytes", type=int, default=1000, help="of values, for each load")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm", type=int, default=1, help="runs of each before those that count")
    parser.add_argument("--output", type=Path, help="where to write the figures as JSON")
    options = parser.parse_args(words)
    wanted = [load for load in LOADS if load.name in (options.loads or SIZES)]
    compiled = column_maker() is not RecordColumns
    print(f"records are decoded {'by the compiled module' if compiled else 'in Python'}", flush=True)
    runs: list[Run] = []
    with beside_broker("bench-backfill") as (spark, broker, directory):
        bench = Bench(spark, broker, directory)
        for load in wanted:
            records = options.megabytes * 1_000_000 // SIZES[load.name]
            bench.fill(load, records)
            for number in range(options.warm + options.runs):
                for way in (LAKE, BACKFILL):
                    run = bench.run(load, way, records)
                    print(f"{load.name:10} {way:14} run {number - options.warm:2}: {run}", flush=True)
                    runs += [run] if number >= options.warm else []
            Topics(broker.bootstrap).delete(load.name)
    report(runs)
    if options.output is not None:
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        document = {"time": moment, "compiled": compiled, "machine": results.machine()}
        text = json.dumps({**document, "runs": [asdict(run) for run in runs]}, indent=1)
        options.output.write_text(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

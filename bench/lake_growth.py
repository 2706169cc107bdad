"""`python -m bench.lake_growth`: one job with many topics, and one topic with many partitions.

For each it tells how long a load takes from its start to its end, how long Spark plans a batch, and what the
driver needs of memory. Records are few: what is measured is all that is not the data.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryListener

from bench import apache_kafka
from bench.broker import Broker
from bench.headrace_broker import Headrace
from bench.topics import Topics
from headrace.spark import session
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake import job
from headrace.spark.lake.config import LakeConfig, TopicRule

RECORDS = 20
CASES = ((1, 1), (10, 1), (100, 1), (1, 100), (1, 1000))


def fill(broker: Broker, prefix: str, topics: int, partitions: int) -> None:
    admin = Topics(broker.bootstrap)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(topics):
        admin.create(f"{prefix}-{number}", partitions)
        for record in range(RECORDS * partitions):
            producer.produce(f"{prefix}-{number}", b"x" * 100, partition=record % partitions)
            producer.poll(0)
    if producer.flush(60):
        raise SystemExit("the broker did not take the records")


def driver_mb(spark: SparkSession) -> tuple[float, float]:
    """(live heap, resident) of Spark's process."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 1e6
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return heap, pages * 4096 / 1e6


class Planning(StreamingQueryListener):
    """How long Spark planned each batch that had records: which offsets there are, and what is to be done."""

    def __init__(self) -> None:
        self.milliseconds: list[int] = []

    def onQueryStarted(self, event: object) -> None:  # noqa: N802  # Spark's name
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        spent = event.progress.durationMs
        if event.progress.numInputRows:
            self.milliseconds.append(spent.get("queryPlanning", 0) + spent.get("latestOffset", 0))

    def onQueryIdle(self, event: object) -> None:  # noqa: N802  # Spark's name
        pass

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802  # Spark's name
        pass

    def wait_for(self, batches: int) -> None:
        """Listeners are told a little later."""
        until = time.monotonic() + 30
        while len(self.milliseconds) < batches:
            if time.monotonic() > until:
                raise SystemExit(f"told of {len(self.milliseconds)} batches instead of {batches}")
            time.sleep(0.1)


def measure(
    spark: SparkSession, broker: Broker, directory: Path, table_format: str, topics: int, partitions: int
) -> dict[str, float | str]:
    prefix = f"{table_format}-{topics}-{partitions}"
    fill(broker, prefix, topics, partitions)
    config = LakeConfig(
        kafka=KafkaProperties({"bootstrap.servers": broker.bootstrap}),
        topics=(TopicRule(pattern=f"{prefix}-.*"),),
        format=table_format,
        # Iceberg's catalog has one place for all its tables.
        location=None if table_format == "iceberg" else f"file://{directory}/{prefix}",
        state=f"file://{directory}/{prefix}/_headrace",
    )
    planning = Planning()
    spark.streams.addListener(planning)
    began = time.monotonic()
    job.run(spark, config, once=True)
    seconds = time.monotonic() - began
    planning.wait_for(topics)
    spark.streams.removeListener(planning)
    heap, resident = driver_mb(spark)
    return {
        "format": table_format,
        "topics": topics,
        "partitions": partitions,
        "seconds": round(seconds, 2),
        "seconds_per_topic": round(seconds / topics, 3),
        "planning_ms": round(median(planning.milliseconds)),
        "driver_heap_mb": round(heap),
        "driver_resident_mb": round(resident),
    }


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lake_growth", description=__doc__)
    parser.add_argument("--format", choices=("parquet", "delta", "iceberg"), default="parquet")
    parser.add_argument("--jars", type=Path, default=apache_kafka.ROOT / ".cache" / "spark-jars")
    options = parser.parse_args(words)
    directory = Path(tempfile.mkdtemp(prefix="bench-lake-", dir=apache_kafka.ROOT / ".cache"))
    broker = Broker(Headrace(), directory / "headrace")
    extra = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
    }
    try:
        broker.start()
        spark = session(
            "bench",
            master="local[2]",
            jar_directory=options.jars,
            extra=extra,
            warehouse=directory / "warehouse",
        )
        spark.sparkContext.setLogLevel("ERROR")
        measure(spark, broker, directory, options.format, 2, 2)  # compiles what the others use
        for topics, partitions in CASES:
            print(
                json.dumps(measure(spark, broker, directory, options.format, topics, partitions)), flush=True
            )
        spark.stop()
    finally:
        broker.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

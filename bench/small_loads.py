"""`python -m bench.small_loads`: what a small load into Delta costs, by settings of Spark.

A table of latest values and a lake, both of a few records: what is measured is all that is not the data. For
each setting it tells the seconds, the CPU seconds of Spark's process and the tasks that Spark started.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from bench import apache_kafka
from bench.broker import Broker
from bench.headrace_broker import Headrace
from bench.topics import Topics
from headrace.spark import session
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake import job as lake_job
from headrace.spark.lake.config import LakeConfig, TopicRule
from headrace.spark.table import config as table_config
from headrace.spark.table import job as table_job

SNAPSHOT = "spark.databricks.delta.snapshotPartitions"
SHUFFLE = "spark.sql.shuffle.partitions"
SETTINGS: tuple[dict[str, str], ...] = (
    {SNAPSHOT: "50", SHUFFLE: "200"},  # Delta's own, and Spark's
    {SNAPSHOT: "4", SHUFFLE: "200"},  # what `headrace.spark.session` gives
    {SNAPSHOT: "4", SHUFFLE: "4"},  # what `headrace table run` takes on two cores
)


def jvm_pid(spark: SparkSession) -> int:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return int(jvm.java.lang.ProcessHandle.current().pid())


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tasks_started(spark: SparkSession) -> int:
    """By the listener that Spark has for its own pages."""
    return int(spark.sparkContext._jsc.sc().statusStore().executorList(False).apply(0).totalTasks())


def fill(spark: SparkSession, broker: Broker, topic: str, records: int, first: int = 0) -> None:
    rows = spark.range(first, first + records, numPartitions=2).selectExpr(
        "cast(string(id % 5000) as binary) as key",
        "cast(to_json(struct(id, concat('name-', id) as name)) as binary) as value",
    )
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.option("topic", topic).save()


def table(spark: SparkSession, broker: Broker, topic: str, where: Path) -> Callable[[], object]:
    text = f"""
[kafka]
"bootstrap.servers" = "{broker.bootstrap}"
[store]
location = "{where}"
[[tables]]
name = "latest"
topic = "{topic}"
key = "string"
format = "json"
schema = "id bigint, name string"
"""
    config = table_config.parse(text, where / "table.toml")
    return lambda: table_job.run(spark, config, once=True)


def lake(spark: SparkSession, broker: Broker, topic: str, where: Path) -> Callable[[], object]:
    config = LakeConfig(
        kafka=KafkaProperties({"bootstrap.servers": broker.bootstrap}),
        topics=(TopicRule(name=topic),),
        format="delta",
        location=f"file://{where}",
        state=f"file://{where}/state",
    )
    return lambda: lake_job.run(spark, config, once=True)


def measure(spark: SparkSession, run: Callable[[], object]) -> dict[str, float]:
    pid = jvm_pid(spark)
    cpu, tasks, began = cpu_seconds(pid), tasks_started(spark), time.monotonic()
    run()
    return {
        "seconds": round(time.monotonic() - began, 2),
        "cpu_seconds": round(cpu_seconds(pid) - cpu, 2),
        "tasks": tasks_started(spark) - tasks,
    }


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.small_loads", description=__doc__)
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3, help="each setting so often; the first one warms up")
    parser.add_argument("--jars", type=Path, default=apache_kafka.ROOT / ".cache" / "spark-jars")
    options = parser.parse_args(words)
    directory = Path(tempfile.mkdtemp(prefix="bench-small-", dir=apache_kafka.ROOT / ".cache"))
    broker = Broker(Headrace(), directory / "headrace")
    extra = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    try:
        broker.start()
        spark = session("bench", master="local[2]", jar_directory=options.jars, extra=extra)
        spark.sparkContext.setLogLevel("ERROR")
        Topics(broker.bootstrap).create("small", 2)
        fill(spark, broker, "small", options.records)
        for number in range(options.rounds):
            for place, setting in enumerate(SETTINGS):
                for key, value in setting.items():
                    spark.conf.set(key, value)
                for name, job in (("table", table), ("lake", lake)):
                    where = directory / f"{name}-{place}-{number}"
                    found = measure(spark, job(spark, broker, "small", where))
                    shown = {key.rpartition(".")[2]: value for key, value in setting.items()}
                    print(json.dumps({"job": name, "round": number, **shown, **found}), flush=True)
        spark.stop()
    finally:
        broker.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

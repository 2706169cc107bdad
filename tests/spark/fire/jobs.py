"""The jobs that are put under fire, by name."""

from __future__ import annotations

import asyncio
from typing import Final

from pyspark.sql import SparkSession

from headrace.spark.mirror.reading import Reading
from tests.cluster.tiered_store import ENVIRONMENT
from tests.spark.fire.job import Job
from tests.spark.fire.judges import (
    Verdict,
    batches_out_of_order,
    output_equals_input,
    table_equals_log,
    translations_equal_logs,
)
from tests.spark.fire.orders import Orders
from tests.spark.fire.programs import mirror, whole_topic

_TOPIC_TO_TOPIC: Final = "tests.spark.fire.programs.topic_to_topic"


def judge_topic(spark: SparkSession, orders: Orders) -> Verdict:
    return output_equals_input(orders.bootstrap, orders.source, orders.target)


#: Spark's own sink is at least once: what this finds of it shows that the test can see.
SPARK_SINK: Final = Job(
    "spark-sink",
    _TOPIC_TO_TOPIC,
    judge_topic,
    options={"format": "kafka"},
    writes_topic=True,
    exactly_once=False,
    batch_records=60_000,
)

SINK: Final = Job("sink", _TOPIC_TO_TOPIC, judge_topic, options={"format": "headrace"}, writes_topic=True)

#: Which task holds which rows, and how many tasks there are, changes from start to start.
SINK_SHUFFLE: Final = Job(
    "sink-shuffle",
    _TOPIC_TO_TOPIC,
    judge_topic,
    options={"format": "headrace", "shuffle": "key"},
    settings={
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.streaming.stateless.enabled": "true",
        # Small partitions are put together by what is found out while the batch runs.
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "500k",
    },
    changing=tuple({"spark.sql.shuffle.partitions": number} for number in ("2", "5", "3")),
    writes_topic=True,
)

#: Two attempts of a task at the same time, of which only one may count.
SINK_SPECULATION: Final = Job(
    "sink-speculation",
    _TOPIC_TO_TOPIC,
    judge_topic,
    options={"format": "headrace"},
    settings={
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.minTaskRuntime": "50ms",
    },
    writes_topic=True,
)


def judge_mirror(spark: SparkSession, orders: Orders) -> Verdict:
    """Each value once, in its partition and in order; and every offset of the source translated exactly."""
    verdict = output_equals_input(orders.bootstrap, orders.source, orders.target)
    reading = asyncio.run(Reading.of(mirror.configured(orders)))
    differing = translations_equal_logs(
        orders.bootstrap,
        orders.source,
        orders.target,
        lambda partition, offset: reading.translate(orders.source, partition, offset),
    )
    return verdict._replace(differing=differing)


MIRROR: Final = Job("mirror", "tests.spark.fire.programs.mirror", judge_mirror, writes_topic=True)


def judge_table(spark: SparkSession, orders: Orders) -> Verdict:
    """Read with nothing of the lake's own: the files are what anybody sees."""
    table_format = orders.options["format"]
    namespace = "lake" if table_format == "iceberg" else ""
    table = spark.read.format(table_format).load(str(orders.tables / namespace / orders.target))
    return table_equals_log(table, orders.bootstrap, orders.source)


def lake(table_format: str) -> Job:
    return Job(
        f"lake-{table_format}",
        "tests.spark.fire.programs.lake",
        judge_table,
        options={"format": table_format},
    )


LAKES: Final = tuple(map(lake, ("delta", "iceberg", "parquet")))


def judge_whole_topic(spark: SparkSession, orders: Orders) -> Verdict:
    """Each record of table, bucket and brokers once, and of a partition none before an older one."""
    rows = spark.read.parquet(str(whole_topic.output(orders)))
    verdict = table_equals_log(rows, orders.bootstrap, orders.source)
    return verdict if verdict.differing else verdict._replace(differing=batches_out_of_order(rows))


WHOLE_TOPIC: Final = Job(
    "whole-topic",
    "tests.spark.fire.programs.whole_topic",
    judge_whole_topic,
    options={"format": "parquet"},
    prepare=whole_topic.prepare,
    settings={f"spark.executorEnv.{name}": value for name, value in ENVIRONMENT.items()},
    source_settings=whole_topic.TIERED,
    producer_batch_bytes=50_000,  # a segment has several
    is_tiered=True,
)
SINKS: Final = (SINK, SINK_SHUFFLE, SINK_SPECULATION)
JOBS: Final = {job.name: job for job in (SPARK_SINK, *SINKS, MIRROR, *LAKES, WHOLE_TOPIC)}

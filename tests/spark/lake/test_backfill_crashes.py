"""A backfill that dies with -9 at every step of a commit: each record is in the table once.

Each start is a JVM. The same without, at more moments, is in test_backfill.py; kills at random moments are in
backfill_fire.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from headrace.spark.lake import config as configs
from headrace.spark.lake import job
from headrace.spark.lake.tables.opening import open_table
from tests.broker_process import BrokerProcess
from tests.cluster_process import eventually
from tests.spark.lake.crashing_backfill import PLACES
from tests.spark.lake.histories import SMALL, by_confluent, create, fill_with_everything, of_table
from tests.spark.lake.killed_backfill import KilledBackfill
from tests.spark.places import location_of


def test_a_driver_that_dies_at_every_place(
    spark: SparkSession,
    headrace: BrokerProcess,
    new_topic: Callable[[], str],
    tmp_path: Path,
    table_format: str,
) -> None:
    topic = new_topic()
    create(headrace.bootstrap, topic, SMALL)
    fill_with_everything(headrace.bootstrap, topic)
    location = location_of(spark, table_format, tmp_path / "lake").removeprefix("file://")
    killed = KilledBackfill(headrace, topic, tmp_path, table_format, location)
    checkpoint = headrace.log_dir / "replication-offset-checkpoint"
    eventually(lambda: f"{topic} 0 " in checkpoint.read_text(), 60, "what is committed is written down")
    for place in PLACES:
        if place != "moving" or table_format == "parquet":
            killed.expect_crash(f"{place}:0")
    config = configs.load(killed.config)
    killed.finish()
    job.run(spark, config, once=True)
    found = of_table(open_table(spark, config, topic).read())
    assert found == by_confluent(headrace.bootstrap, topic)

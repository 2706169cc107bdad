"""The session that `headrace.spark.session` makes can read, write and keep tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.spark import jars
from headrace.spark.sessions import ICEBERG_CATALOG, SessionExists, session, settings
from tests.broker_process import BrokerProcess


def test_every_jar_is_named_with_its_version() -> None:
    named = jars.needed()
    assert "spark-sql-kafka-0-10_2.13-4.1.3.jar" in [jar.file_name for jar in named]
    assert all("$" not in jar.coordinates and jar.version for jar in named)


def test_a_directory_without_jars_says_how_to_fill_it(tmp_path: Path) -> None:
    with pytest.raises(jars.JarsMissing, match="headrace spark jars --directory"):
        settings(jar_directory=tmp_path)


def test_a_second_session_is_refused_and_not_silently_the_first(spark: SparkSession) -> None:
    with pytest.raises(SessionExists):
        session()


def test_a_topic_goes_into_tables_of_both_formats(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = new_topic()
    rows = spark.range(100).selectExpr("cast(id as string) as key", "cast(id * 2 as string) as value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option(
        "topic", topic
    ).save()
    read = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    found = read.option("subscribe", topic).load()

    found.write.format("delta").save(str(tmp_path / "delta"))
    name = f"{ICEBERG_CATALOG}.tests.`{topic}`"
    found.writeTo(name).create()

    for table in (spark.read.format("delta").load(str(tmp_path / "delta")), spark.table(name)):
        values = {int(row.value) for row in table.selectExpr("cast(value as string) as value").collect()}
        assert values == set(range(0, 200, 2))

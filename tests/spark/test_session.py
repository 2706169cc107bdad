"""The session that `headrace.spark.session` makes can read, write and keep tables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from headrace.spark import class_archive, jars
from headrace.spark.sessions import ICEBERG_CATALOG, SessionExists, session, settings
from tests.broker_process import BrokerProcess
from tests.cluster_process import eventually


def test_every_jar_is_named_with_its_version() -> None:
    named = jars.needed()
    assert "spark-sql-kafka-0-10_2.13-4.1.3.jar" in [jar.file_name for jar in named]
    assert all("$" not in jar.coordinates and jar.version for jar in named)


def test_a_directory_without_jars_says_how_to_fill_it(tmp_path: Path) -> None:
    with pytest.raises(jars.JarsMissing, match="headrace spark jars --directory"):
        settings(jar_directory=tmp_path)


def test_a_second_call_returns_the_session_that_runs(spark: SparkSession) -> None:
    assert session() is spark
    assert session(extra={"spark.ui.enabled": "false"}) is spark


def test_a_session_with_other_settings_is_refused_and_not_silently_the_first(spark: SparkSession) -> None:
    with pytest.raises(SessionExists, match=r"spark.master is 'local\[2\]', not 'local\[7\]'"):
        session(master="local[7]")
    with pytest.raises(SessionExists, match=r"spark\.sql\.warehouse\.dir"):
        session(warehouse="elsewhere")
    with pytest.raises(SessionExists, match=r"my\.own"):
        session(extra={"my.own": "1"})


_MAPS = """
from pathlib import Path
from headrace.spark import class_archive, session
spark = session(master="local[1]", extra={"spark.ui.enabled": "false"})
print(class_archive.path().name in Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text())
"""


def test_a_driver_maps_the_archive_of_sparks_classes(spark_jars: Path, tmp_path: Path) -> None:
    """One of its own: that of the tests does without, if another process makes the archive just then."""
    eventually(lambda: class_archive.make() is not None, class_archive.SECONDS, "the archive is there")
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    said = subprocess.run(
        [sys.executable, "-c", _MAPS],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout.splitlines() == ["True"], said.stderr


def test_a_session_knows_the_sink_and_says_how_to_read(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"headrace\.spark\.read_topic\(spark, TOPIC"):
        spark.read.format("headrace").load()
    with pytest.raises(AnalysisException, match="stream_topic"):
        spark.readStream.format("headrace").load()


_BARE = """
from pathlib import Path
from pyspark.sql import SparkSession
from headrace.spark import read_topic
from headrace.spark.lake import config, job
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
lake = '[kafka]\\n"bootstrap.servers" = "127.0.0.1:1"\\n[lake]\\nformat = "parquet"\\n'
lake += 'location = "lake"\\n[[topics]]\\nname = "t"\\n'
for attempt in (
    lambda: read_topic(spark, "t", kafka={"bootstrap.servers": "127.0.0.1:1"}),
    lambda: job.run(spark, config.parse(lake, Path("lake.toml")), once=True),
):
    try:
        attempt()
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_session_without_the_jars_is_told_which_and_how_to_have_them(tmp_path: Path) -> None:
    """In a process of its own: a process has one session."""
    said = subprocess.run(
        [sys.executable, "-c", _BARE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    lines = said.stdout.splitlines()
    assert len(lines) == 2, said.stderr
    for line in lines:
        assert line.startswith("JarsMissing this Spark session has no AdminClient"), line
        assert "kafka-clients-" in line
        assert "headrace.spark.settings()" in line


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

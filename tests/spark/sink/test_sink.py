"""Rows go through `format("headrace")` into a topic, and a read_committed consumer finds each once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headrace.client.partitioner import partition_for_key
from headrace.spark.sink.datasource import register
from tests.broker_process import BrokerProcess
from tests.spark.sink.reading import create, read


@pytest.fixture(autouse=True)
def registered(spark: SparkSession) -> None:
    register(spark)


def _input(spark: SparkSession, directory: Path, first: int, last: int) -> None:
    spark.range(first, last, numPartitions=2).write.mode("append").parquet(str(directory))


def _stream(spark: SparkSession, directory: Path) -> DataFrame:
    frame = spark.readStream.schema("id long").parquet(str(directory))
    return frame.selectExpr("cast(id as string) as key", "concat('value ', id) as value")


def _run(frame: DataFrame, broker: BrokerProcess, topic: str, checkpoint: Path, **options: str) -> None:
    writer = frame.writeStream.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap)
    for name, value in {"topic": topic, "checkpointLocation": str(checkpoint), **options}.items():
        writer = writer.option(name.replace("_", "."), value)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(300)
    assert not query.isActive
    if error := query.exception():
        raise error


def test_a_stream_arrives_once(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = new_topic()
    create(broker.bootstrap, topic, 3)
    for first in (0, 500):
        _input(spark, tmp_path / "in", first, first + 500)
        _run(_stream(spark, tmp_path / "in"), broker, topic, tmp_path / "checkpoint")
    seen = read(broker.bootstrap, topic)
    assert sorted(int(each.key or b"") for each in seen) == list(range(1000))
    assert all(each.value == b"value " + (each.key or b"") for each in seen)
    assert all(each.partition == partition_for_key(each.key or b"", 3) for each in seen)


def test_a_batch_that_spark_forgot_is_not_written_again(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    """As after a driver's death between the sink's commit and Spark's own."""
    topic = new_topic()
    create(broker.bootstrap, topic, 2)
    _input(spark, tmp_path / "in", 0, 300)
    checkpoint = tmp_path / "checkpoint"
    _run(_stream(spark, tmp_path / "in"), broker, topic, checkpoint)
    for commit in (checkpoint / "commits").iterdir():
        commit.unlink()
    _run(_stream(spark, tmp_path / "in"), broker, topic, checkpoint)
    assert sorted(int(each.key or b"") for each in read(broker.bootstrap, topic)) == list(range(300))


def test_a_frame_is_written_as_one_job(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    create(broker.bootstrap, topic, 2)
    frame = spark.range(100, numPartitions=3).selectExpr("cast(id as string) as value")
    writer = frame.write.format("headrace").mode("append").option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("sink.id", topic)
    for _ in range(2):
        writer.option("job.id", "load-2026-11-15").save()
    assert sorted(int(each.value or b"") for each in read(broker.bootstrap, topic)) == list(range(100))


def test_each_batch_of_a_query_may_be_a_job_of_its_own(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    """In foreachBatch Spark names the query to the tasks: a job is none of its batches all the same."""
    topic = new_topic()
    create(headrace.bootstrap, topic, 2)

    def write(frame: DataFrame, batch: int) -> None:
        for _ in range(2):  # as if the first time had not been noted
            writer = frame.write.format("headrace").mode("append").option("topic", topic)
            writer = writer.option("kafka.bootstrap.servers", headrace.bootstrap).option("sink.id", topic)
            writer.option("job.id", f"batch-{batch}").save()

    for first in (0, 100):
        _input(spark, tmp_path / "in", first, first + 100)
        stream = _stream(spark, tmp_path / "in").writeStream.foreachBatch(write)
        query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination(300)
    assert sorted(int(each.key or b"") for each in read(headrace.bootstrap, topic)) == list(range(200))


def test_a_mistake_is_told_in_the_error_of_the_query(
    spark: SparkSession, headrace: BrokerProcess, tmp_path: Path
) -> None:
    _input(spark, tmp_path / "in", 0, 10)
    frame = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    with pytest.raises(StreamingQueryException, match="no place for column 'id'"):
        _run(frame, headrace, "unused", tmp_path / "checkpoint")
    batch = spark.range(3).selectExpr("cast(id as string) as value").write.format("headrace")
    with pytest.raises(PySparkException, match=r"kafka\.bootstrap\.servers"):
        batch.mode("append").option("topic", "unused").save()

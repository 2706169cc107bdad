"""A whole topic as a stream: table, bucket and brokers by one query with one checkpoint."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headrace.spark import stream_whole_topic
from headrace.spark.lake.config import LakeConfig
from tests.broker_process import HeadraceProcess
from tests.spark.lake.conftest import LakeUnderTest
from tests.spark.segments import histories
from tests.spark.segments.histories import Bucket
from tests.spark.segments.test_whole_topic import answer, expected, records


class Query:
    """Into Parquet files, batch by batch, so that what a batch wrote can be told from the next one's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.checkpoint = directory / "checkpoint"

    def run(self, frame: DataFrame) -> None:
        query = (
            frame.writeStream.format("parquet")
            .option("path", str(self.directory / "out"))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def written(self, spark: SparkSession) -> DataFrame:
        return spark.read.parquet(str(self.directory / "out"))


@pytest.fixture
def topic(tiered: HeadraceProcess) -> str:
    return histories.create(tiered, f"stream-{os.getpid()}")


def load(spark: SparkSession, tiered: HeadraceProcess, topic: str, tmp_path: Path) -> LakeConfig:
    lake = LakeUnderTest(spark, tiered, tmp_path, "parquet")
    config = lake.config(f'[[topics]]\nname = "{topic}"\nformat = "json"\nschema = "id bigint, text string"')
    lake.load(config)
    return config


def test_history_and_live_are_one_stream(
    spark: SparkSession, tiered: HeadraceProcess, bucket: Bucket, topic: str, tmp_path: Path
) -> None:
    sent = records(0, 600)
    histories.send(tiered, topic, sent)
    config = load(spark, tiered, topic, tmp_path)
    sent += records(600, 1800)
    histories.send(tiered, topic, sent[600:])
    histories.wait_tiered(tiered, topic)
    sent += records(2400, 60)
    histories.send(tiered, topic, sent[2400:])
    query = Query(tmp_path)

    def frame() -> DataFrame:
        return stream_whole_topic(spark, topic, checkpoint=query.checkpoint, lake=config, **bucket)

    query.run(frame())
    assert answer(query.written(spark)) == expected(sent)
    pinned = json.loads((query.checkpoint / "history.json").read_text())
    assert pinned["files"]
    assert pinned["tasks"]
    assert any(pinned["letters"])
    # The lake goes on, and the bucket too: what is read when it is started again does not change by that.
    sent += records(2460, 60)
    histories.send(tiered, topic, sent[2460:])
    load(spark, tiered, topic, tmp_path)
    query.run(frame())
    assert answer(query.written(spark)) == expected(sent)
    elsewhere = frame().writeStream.format("noop").option("checkpointLocation", str(tmp_path / "other"))
    with pytest.raises(StreamingQueryException, match="the frame was made for the checkpoint"):
        elsewhere.trigger(availableNow=True).start().awaitTermination()

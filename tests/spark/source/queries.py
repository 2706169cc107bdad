"""One query over and over, as a scheduler runs it, and what a client that is not Spark sees of its group."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark.source.topic import stream_topic

_SECONDS = 60.0


class Job:
    """A table of files and a checkpoint. Calling it reads what has come since the last call."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str, directory: Path) -> None:
        self.spark = spark
        self.kafka = {"bootstrap.servers": bootstrap}
        self.topic = topic
        self.table = str(directory / "table")
        self.checkpoint = str(directory / "checkpoint")

    def frame(self, **options: Any) -> DataFrame:
        return stream_topic(self.spark, self.topic, kafka=self.kafka, **options)

    def start(self, trigger: dict[str, Any], **options: Any) -> StreamingQuery:
        return self.write(self.frame(**options), trigger)

    def write(self, rows: DataFrame, trigger: dict[str, Any]) -> StreamingQuery:
        return (
            rows.selectExpr("partition", "offset", "cast(value as string) as value")
            .writeStream.format("parquet")
            .option("path", self.table)
            .option("checkpointLocation", self.checkpoint)
            .trigger(**trigger)
            .start()
        )

    def __call__(self, **options: Any) -> list[int]:
        """Rows of each batch that had some."""
        query = self.start({"availableNow": True}, **options)
        assert query.awaitTermination(300)
        return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]

    @contextmanager
    def running(self, every: str, **options: Any) -> Iterator[StreamingQuery]:
        query = self.start({"processingTime": every}, **options)
        try:
            yield query
        finally:
            query.stop()

    @property
    def values(self) -> list[str]:
        return sorted(row.value for row in self.spark.read.parquet(self.table).select("value").collect())


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """As librdkafka sees it; -1001 where there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        wanted = [TopicPartition(topic, index) for index in range(partitions)]
        return [each.offset for each in consumer.committed(wanted, _SECONDS)]
    finally:
        consumer.close()


def remove_before(bootstrap: str, topic: str, offset: int) -> None:
    """As retention does it, in partition 0."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    [future] = admin.delete_records([TopicPartition(topic, 0, offset)]).values()
    assert future.result(_SECONDS).low_watermark == offset


def delete(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(_SECONDS)
    eventually(lambda: topic not in admin.list_topics(timeout=_SECONDS).topics, "the topic is gone")


def eventually(holds: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        pause.wait(0.2)

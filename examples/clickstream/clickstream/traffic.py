"""A running aggregate, back into a topic: how often each page was seen in each five seconds, exactly once."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import Consumer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.streaming.query import StreamingQuery

from clickstream.topics import PAGE_TRAFFIC, PAGE_VIEWS, VIEW_SCHEMA
from headrace.spark import Decoding, Format, stream_topic
from headrace.spark.sink.datasource import register


def start(spark: SparkSession, bootstrap: str, checkpoint: Path) -> StreamingQuery:
    register(spark)
    views = stream_topic(
        spark,
        PAGE_VIEWS,
        kafka={"bootstrap.servers": bootstrap},
        decoding=Decoding(Format.JSON, schema=VIEW_SCHEMA),
        undecodable="drop",
        group=PAGE_TRAFFIC,  # so that `headrace group lag` shows how far it is
    )
    counted = (
        # A window is over, and its totals are final, when something ten seconds younger has been seen.
        views.withWatermark("timestamp", "10 seconds")
        .groupBy(F.window("timestamp", "5 seconds"), "page")
        .agg(F.count("*").alias("views"))
    )
    return (
        counted.select(
            F.col("page").alias("key"),
            F.to_json(F.struct("page", F.col("window.start").alias("since"), "views")).alias("value"),
        )
        .writeStream.format("headrace")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", PAGE_TRAFFIC)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="3 seconds")
        .start()
    )


class Reader:
    """Any consumer can read the totals, if it reads what is committed."""

    def __init__(self, bootstrap: str) -> None:
        self.totals = 0
        self.latest: dict[str, int] = {}
        self._since = ""
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "screen",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._consumer.subscribe([PAGE_TRAFFIC])

    def read(self) -> None:
        """What has come since the last call; `latest` has the pages of the youngest window."""
        for message in self._consumer.consume(500, timeout=0):
            if message.error() is not None:
                continue
            total = json.loads(message.value() or b"")
            self.totals += 1
            if total["since"] > self._since:
                self._since, self.latest = total["since"], {}
            if total["since"] == self._since:
                self.latest[total["page"]] = total["views"]

    def close(self) -> None:
        self._consumer.close()

"""Two versions of one view, revenue by product: each a streaming query with its own table and checkpoint.

Readers ask `current`, a file with the name of a version. To switch is to replace that file.
"""

from __future__ import annotations

from pathlib import Path

from orders import ORDERS, SCHEMA
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark import stream_topic


def cents(version: str) -> Column:
    """What an order adds to the revenue. Version 1 takes a refund for a sale."""
    if version == "v1":
        return F.col("cents")
    return F.when(F.col("kind") == "refund", -F.col("cents")).otherwise(F.col("cents"))


class Views:
    def __init__(self, spark: SparkSession, bootstrap: str, directory: Path) -> None:
        self.spark, self.bootstrap, self.directory = spark, bootstrap, directory

    def start(self, version: str, *, until_end: bool = False) -> StreamingQuery:
        """From the first record if the version is new, else from where it stopped."""
        orders = stream_topic(
            self.spark,
            ORDERS,
            kafka=self.bootstrap,
            decoding=SCHEMA,
            undecodable="fail",
            start="earliest",
            group=f"revenue-{version}",  # `headrace group lag revenue-v2` shows how far it is
        )
        view = orders.groupBy("product").agg(
            F.count("*").alias("orders"), F.sum(cents(version)).alias("cents")
        )
        writer = (
            view.writeStream.format("delta")
            .outputMode("complete")
            .queryName(f"revenue {version}")
            .option("checkpointLocation", str(self.directory / "checkpoints" / version))
        )
        trigger = (
            writer.trigger(availableNow=True) if until_end else writer.trigger(processingTime="2 seconds")
        )
        return trigger.start(str(self.path(version)))

    def path(self, version: str) -> Path:
        return self.directory / "revenue" / version

    def read(self, version: str) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.path(version)))

    def orders_in(self, version: str) -> int:
        """How many orders the version has counted so far."""
        if not any(self.path(version).glob("_delta_log/*0.json")):  # its first commit
            return 0
        total = self.read(version).agg(F.sum("orders")).first()
        return int(total[0] or 0) if total is not None else 0

    def switch(self, version: str) -> None:
        """A rename is atomic: a reader sees the old name or the new one."""
        written = self.directory / "current.new"
        written.write_text(version)
        written.replace(self.directory / "current")

    def current(self) -> str:
        return (self.directory / "current").read_text()

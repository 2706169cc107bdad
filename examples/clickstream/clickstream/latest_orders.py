"""The last state of each order as a table, kept up while orders change. Cancelled ones are not in it."""

from __future__ import annotations

import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headrace.spark.lake.progress import progress
from headrace.spark.table import config, job
from headrace.spark.table.job import Tables


class LatestOrders:
    def __init__(self, spark: SparkSession, file: Path) -> None:
        self.spark = spark
        self.config = config.load(file)
        self.path = file.parent / "tables" / "latest-orders"
        #: Records of orders that are in the table.
        self.loaded = 0

    def run(self, stop: threading.Event) -> None:
        job.run(self.spark, self.config, stop=stop, told=self._told)

    def finish(self) -> None:
        """What has changed since the last batch."""
        job.run(self.spark, self.config, once=True, told=self._told)

    def _told(self, tables: Tables) -> None:
        self.loaded = max([self.loaded, *(table.loaded for table in progress(tables))])

    def read(self) -> DataFrame:
        """order, customer, status, items, total"""
        orders = self.spark.read.format("delta").load(str(self.path))
        return orders.selectExpr("key AS order", "customer", "status", "items", "total")

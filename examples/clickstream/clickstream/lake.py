"""Both topics into Delta tables, continuously, each record once. Broken ones go to tables of their own."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from headrace.spark.lake import config, job
from headrace.spark.lake.job import Lake
from headrace.spark.lake.progress import progress


class Loading:
    def __init__(self, spark: SparkSession, file: Path) -> None:
        self.spark = spark
        self.config = config.load(file)
        #: Records, by topic.
        self.loaded: Counter[str] = Counter()

    def run(self, stop: threading.Event) -> None:
        job.run(self.spark, self.config, stop=stop, told=self._told)

    def finish(self) -> None:
        """What has come since the last batch."""
        job.run(self.spark, self.config, once=True, told=self._told)

    def _told(self, lake: Lake) -> None:
        for topic in progress(lake):
            self.loaded[topic.topic] = max(self.loaded[topic.topic], topic.loaded)

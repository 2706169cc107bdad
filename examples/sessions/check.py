"""Are the visits those of the clicks in the log? Spark's own session windows say it, in one batch."""

from __future__ import annotations

from dataclasses import dataclass

from clicks import CLICKS, GAP_MINUTES, LAST_VISITOR, VISITS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from headrace.spark import read_topic


@dataclass(frozen=True)
class Verdict:
    clicks: int
    visits: int
    expected: int
    #: Visits that only the log or only the topic has, or that the topic has twice.
    differ: int

    @property
    def holds(self) -> bool:
        return self.visits == self.expected > 0 and self.differ == 0


def check(spark: SparkSession, bootstrap: str) -> Verdict:
    clicks = read_topic(spark, CLICKS, kafka=bootstrap, decoding="cents bigint")
    clicks = clicks.withColumn("visitor", F.col("key").cast("string")).where(F.col("visitor") != LAST_VISITOR)
    expected = of_a_batch(clicks).cache()
    visits = read_topic(
        spark,
        VISITS,
        kafka=bootstrap,
        decoding="visitor string, begin_ms bigint, end_ms bigint, clicks bigint, cents bigint",
    ).select("visitor", "begin_ms", "end_ms", "clicks", "cents")
    visits = visits.cache()
    differ = expected.exceptAll(visits).count() + visits.exceptAll(expected).count()
    return Verdict(clicks.count(), visits.count(), expected.count(), differ)


def of_a_batch(clicks: DataFrame) -> DataFrame:
    """All clicks at once and in order: no state, no timers, no watermark."""
    window = F.session_window("timestamp", f"{GAP_MINUTES} minutes")
    grouped = clicks.groupBy("visitor", window.alias("window"))
    return grouped.agg(
        F.unix_millis(F.min("timestamp")).alias("begin_ms"),
        F.unix_millis(F.max("timestamp")).alias("end_ms"),
        F.count("*").alias("clicks"),
        F.sum("cents").alias("cents"),
    ).drop("window")

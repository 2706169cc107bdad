"""Dead letters, tried again after a fix: what can be decoded now goes into its table, once.

A letter whose topic, partition and offset are in the table is delivered. A replay first delivers the letters
that are not, and then removes those that are. Wherever it is cut off, the next one goes on there.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from headrace.spark import columns
from headrace.spark.lake import locks, shaping
from headrace.spark.lake.checkpoint import Range
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.loader import prepare
from headrace.spark.lake.plan import Route
from headrace.spark.lake.tables.matching import within
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.table import Commit, Table


class Replayed(NamedTuple):
    delivered: int
    left: int
    reasons: dict[str, int]
    """Of those that are left, the most frequent first."""


def replay(spark: SparkSession, config: LakeConfig, route: Route) -> Replayed:
    """A running job need not stop. No maintenance runs meanwhile: both may rewrite the same files."""
    dead = open_table(spark, config, route.dead_letters)
    if dead.schema() is None:
        return Replayed(0, 0, {})
    table = open_table(spark, config, route.table)
    writer = f"replay-{route.topic}"
    with locks.held(config.state, "maintain", spark):
        for each in (table, dead):
            each.recover(writer)
        before = _letters(dead, route).count()
        if before:
            _deliver(table, dead, route, writer)
            there = delivered(table, _letters(dead, route))
            if not there.isEmpty():
                dead.remove(there)
        return _judged(_letters(dead, route), before)


def _letters(dead: Table, route: Route) -> DataFrame:
    return dead.read().filter(sf.col(columns.TOPIC) == route.topic)


def _deliver(table: Table, dead: Table, route: Route, writer: str) -> None:
    letters = _letters(dead, route)
    # Decoding takes a frame as the connector gives it.
    records = letters.drop(shaping.REASON, shaping.FAILED_AT).withColumn("timestampType", sf.lit(0))
    shaped = shaping.shape(records, route)
    following = prepare(table, shaped)
    judged = shaping.judge(shaped, following)
    new = judged.join(sf.broadcast(delivered(table, letters)), list(columns.IDENTITY), "left_anti")
    rows = shaping.good_rows(new, shaped, following)
    if not rows.isEmpty():
        table.append(rows, Commit(writer, table.last(writer) + 1))


def delivered(table: Table, letters: DataFrame) -> DataFrame:
    """Which of the letters are in the table, by their names. The table is read where letters can be, only."""
    keys = letters.select(*columns.IDENTITY)
    spans = keys.groupBy(columns.TOPIC, columns.PARTITION).agg(
        sf.min(columns.OFFSET).alias("first"), (sf.max(columns.OFFSET) + 1).alias("end")
    )
    # As many rows as there are partitions with dead letters.
    ranges = [Range(row.topic, row.partition, row["first"], row["end"]) for row in spans.collect()]
    there = table.read().filter(within(ranges)) if ranges else table.read().limit(0)
    found = there.select(*columns.IDENTITY).join(sf.broadcast(keys), list(columns.IDENTITY), "left_semi")
    return found.select(*columns.IDENTITY)


def _judged(left: DataFrame, before: int) -> Replayed:
    remaining = left.count()
    return Replayed(before - remaining, remaining, _counted_reasons(left))


def reasons(letters: DataFrame, topic: str) -> dict[str, int]:
    """Of the letters of a topic, the most frequent first."""
    return _counted_reasons(letters.filter(sf.col(columns.TOPIC) == topic))


def _counted_reasons(letters: DataFrame) -> dict[str, int]:
    counts = letters.groupBy(shaping.REASON).count().orderBy(sf.col("count").desc(), shaping.REASON).limit(10)
    return {str(row[shaping.REASON]): int(row["count"]) for row in counts.collect()}

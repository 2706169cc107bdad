"""Where to begin when a table has records and the checkpoint does not: right behind them. Behind a backfill,
where it says that it ended.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from headrace.spark import columns
from headrace.spark.lake import broker
from headrace.spark.lake.backfill.notes import Notes
from headrace.spark.lake.checkpoint import Offsets, offsets_json
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import files_for
from headrace.spark.lake.plan import Route
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.table import Table

_EARLIEST = -2
_LATEST = -1


def starting_offsets(spark: SparkSession, config: LakeConfig, route: Route) -> str | None:
    """For the connector, which then wants every partition. None where nothing is loaded.

    A partition is loaded in the order of its offsets, so all up to the largest are in one of the two tables.
    """
    backfilled = Notes(files_for(config.state, spark), route).ends()
    loaded = _loaded(spark, config, route)
    for partition, end in (backfilled or {}).items():
        key = (route.topic, partition)
        loaded[key] = max(loaded.get(key, 0), end)
    if not loaded and backfilled is None:
        return None
    # Whoever has loaded the history wants all that follows, also of partitions that had none.
    is_whole = config.start == "earliest" or backfilled is not None
    otherwise = _EARLIEST if is_whole else _LATEST
    there = broker.partitions(spark, config.kafka, [route.topic])[route.topic]
    return offsets_json({(route.topic, each): loaded.get((route.topic, each), otherwise) for each in there})


def _loaded(spark: SparkSession, config: LakeConfig, route: Route) -> Offsets:
    tables = [open_table(spark, config, name) for name in (route.table, route.dead_letters)]
    if tables[0].schema() is None:
        return {}  # dead letters of a table that is gone say nothing of the next one
    loaded: Offsets = {}
    for table in tables:
        for partition, following in _following(table, route.topic).items():
            key = (route.topic, partition)
            loaded[key] = max(loaded.get(key, 0), following)
    return loaded


def _following(table: Table, topic: str) -> dict[int, int]:
    """For each partition the offset after the largest. As many rows as partitions come to the driver."""
    if table.schema() is None:
        return {}
    largest = (
        table.read()
        .filter(sf.col(columns.TOPIC) == topic)
        .groupBy(columns.PARTITION)
        .agg((sf.max(columns.OFFSET) + 1).alias("following"))
    )
    return {int(row[columns.PARTITION]): int(row["following"]) for row in largest.collect()}

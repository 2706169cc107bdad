"""The tiers, read by Spark: what producers told, what the log holds, what lakes hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from headrace.audit.tally import Cell, Tally
from headrace.spark import columns
from headrace.spark.audit import expressions
from headrace.spark.audit.books import LAST_MS, Books
from headrace.spark.audit.config import AuditConfig, LakeTable
from headrace.spark.audit.lakes import positions_told
from headrace.spark.audit.offsets import Range, as_option
from headrace.spark.audit.picture import LakeTier, Partition, Read, Since
from headrace.spark.connector import reader_settings

_CELL: Final = ("topic", "partition", "window_ms")


def read_range(spark: SparkSession, kafka: Mapping[str, str], wanted: Mapping[Partition, Range]) -> DataFrame:
    """The records of these offsets, as the connector gives them; only committed ones."""
    return (
        spark.read.format("kafka")
        .options(**reader_settings({**kafka, "isolation.level": "read_committed"}))
        .option("subscribe", ",".join(sorted({topic for topic, _ in wanted})))
        .option("startingOffsets", as_option({place: span.start for place, span in wanted.items()}))
        .option("endingOffsets", as_option({place: span.end for place, span in wanted.items()}))
        # What retention takes away meanwhile must not look as if it had never been stored. The next pass sees
        # where the log begins then, and says what is gone.
        .option("failOnDataLoss", "true")
        .load()
    )


# --- what the books hold ------------------------------------------------------------------------------------


class Cells(NamedTuple):
    told: dict[Cell, Tally]
    uncertain: dict[Cell, int]
    log: dict[Cell, Read]

    @property
    def windows(self) -> set[tuple[str, int]]:
        return {(cell.topic, cell.window_ms) for cell in (*self.told, *self.log)}


def unsettled_cells(books: Books, since: Since, certified: DataFrame) -> Cells:
    """What producers told and what the log holds, of windows that have something newer than a certificate.

    `certified` has topic, window_ms and the step of the certificate.
    """
    rows = books.table("tallies").where("window_ms is not null")
    rows = rows.where(F.col("topic").isin(list(since)))
    for topic, since_ms in since.items():
        if since_ms is not None:
            rows = rows.where((F.col("topic") != topic) | (F.col("window_ms") >= since_ms))
    more = (
        F.sum("uncertain").alias("uncertain"),
        F.max("last_offset").alias("last_offset"),
        F.max("asked_ms").alias("asked_ms"),
        F.max("step").alias("touched"),
    )
    summed = expressions.summed(rows.groupBy("told", *_CELL).agg(*expressions.sum_of_tallies(*more)))
    of_window = Window.partitionBy("topic", "window_ms")
    open_ones = (
        summed.withColumn("touched", F.max("touched").over(of_window))
        .join(F.broadcast(certified), ["topic", "window_ms"], "left")
        .where("step is null or touched > step")
    )
    found = Cells({}, {}, {})
    for row in open_ones.toLocalIterator():
        cell = Cell(row.topic, row.partition, row.window_ms)
        tally = Tally.parse(row["count"], row.checksum)
        if not row.told:
            found.log[cell] = Read(tally, row.last_offset, row.asked_ms)
            continue
        found.told[cell] = tally
        if row.uncertain:
            found.uncertain[cell] = row.uncertain
    return found


# --- lakes --------------------------------------------------------------------------------------------------


#: Spark's names for "there is no such table".
_ABSENT: Final = frozenset(
    {
        "DELTA_PATH_DOES_NOT_EXIST",
        "DELTA_TABLE_NOT_FOUND",
        "PATH_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "TABLE_OR_VIEW_NOT_FOUND",
    }
)


def open_table(spark: SparkSession, table: LakeTable) -> DataFrame | None:
    """None where there is no such table yet: a lake makes it with the first record, or dead letter."""
    try:
        if table.format == "iceberg":
            return spark.table(table.location)
        return spark.read.format(table.format).load(table.location)
    except AnalysisException as error:
        if error.getCondition() in _ABSENT:
            return None
        raise


def lake_tier(
    spark: SparkSession,
    tables: Sequence[LakeTable],
    config: AuditConfig,
    windows: Collection[tuple[str, int]],
    positions: Mapping[Partition, int],
) -> LakeTier:
    """Counted up to `positions`, where the log tier stands: a lake that is ahead of it is no difference."""
    told = positions_told(spark, tables)
    needed = [columns.TOPIC, columns.PARTITION, columns.OFFSET, columns.TIMESTAMP, expressions.RECORD_HASH]
    there = [opened for table in tables if (opened := open_table(spark, table)) is not None]
    frames = [expressions.with_hash(opened).select(*needed) for opened in there]
    if not windows or not frames:
        return LakeTier({}, told)
    rows = frames[0]
    for more in frames[1:]:
        rows = rows.unionByName(more)
    rows = rows.where(F.col(columns.TOPIC).isin(list(config.topics)))
    loaded: dict[Partition, int] = {}
    if any(table.checkpoint is None for table in tables):
        # Before the rows are counted: a commit between the two jobs must not look as if it had left some out.
        last = rows.groupBy(columns.TOPIC, columns.PARTITION).agg(F.max(columns.OFFSET))
        loaded = {(row[0], row[1]): row[2] + 1 for row in last.toLocalIterator()}
    places = [(topic, partition, offset) for (topic, partition), offset in positions.items()]
    limits = spark.createDataFrame(places, "topic string, partition int, limit bigint")
    wanted = spark.createDataFrame(sorted(windows), "topic string, window_ms bigint")
    first = max(-LAST_MS, min(LAST_MS, *(window for _, window in windows)))
    within = rows.where(F.col(columns.TIMESTAMP) >= F.timestamp_millis(F.lit(first))).join(
        F.broadcast(limits), [columns.TOPIC, columns.PARTITION]
    )
    counted = expressions.tallies_of_records(within.where("offset < limit"), config.window_ms)
    cells = {
        Cell(row.topic, row.partition, row.window_ms): Tally.parse(row["count"], row.checksum)
        for row in counted.join(F.broadcast(wanted), ["topic", "window_ms"]).toLocalIterator()
    }
    return LakeTier(cells, {**loaded, **told})

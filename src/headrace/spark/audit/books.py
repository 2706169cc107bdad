"""The audit's own tables: events, tallies of the log, verdicts. Each is only ever appended to.

A row with a `position` says how far a partition of a topic was read; it is in the same commit as what was
read, so that nothing is taken twice or left out, whenever the audit is killed. Every commit carries the
number of its pass as Delta's transaction, so that of two audits on the same books one yields.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.types import StructType

from headrace.spark.audit.picture import Partition

_COUNTS: Final = (
    "array<struct<topic: string, partition: int, window_ms: bigint, count: bigint, checksum: string, "
    "uncertain: bigint>>"
)
EVENT: Final = (
    "version int, producer string, incarnation string, server string, started_ms bigint, sequence bigint, "
    "time_ms bigint, complete_until_ms bigint, interval_ms bigint, window_length_ms bigint, closing boolean, "
    f"retired boolean, counts {_COUNTS}"
)
_PROGRESS: Final = "source_topic string, source_partition int, position bigint, step bigint"
SCHEMAS: Final = {
    "events": f"{EVENT}, heard_ms bigint, {_PROGRESS}",
    "log": (
        "topic string, partition int, window_ms bigint, count bigint, checksum string, last_offset bigint, "
        f"asked_ms bigint, {_PROGRESS}"
    ),
    "verdicts": (
        "topic string, window_ms bigint, window timestamp, state string, headline string, revision int, "
        "decided_ms bigint, tiers map<string, bigint>, document string, step bigint"
    ),
}
_COMPACT_EVERY: Final = 50


class Standing(NamedTuple):
    """The number of the last pass, and the positions of the topics of events and of the audited ones."""

    step: int
    events: dict[Partition, int]
    log: dict[Partition, int]


class Books:
    def __init__(self, spark: SparkSession, location: str) -> None:
        self.spark = spark
        self.location = location.rstrip("/")

    def path(self, table: str) -> str:
        return f"{self.location}/{table}"

    def create(self) -> None:
        for table, schema in SCHEMAS.items():
            self.spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{self.path(table)}` ({schema}) USING delta")

    def table(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(self.path(name))

    def standing(self) -> Standing:
        """How far everything is, in one look."""
        parts = [
            self._progress(table, "source_topic", "source_partition", "position")
            for table in ("events", "log")
        ]
        parts.append(
            self._progress("verdicts", "cast(null as string)", "cast(null as int)", "cast(null as bigint)")
        )
        rows = parts[0].union(parts[1]).union(parts[2]).toLocalIterator()
        found = Standing(0, {}, {})
        for table, topic, partition, position, step in rows:
            found = found._replace(step=max(found.step, step))
            if position is not None:
                (found.events if table == "events" else found.log)[topic, partition] = position
        return found

    def _progress(self, table: str, topic: str, partition: str, position: str) -> DataFrame:
        rows = self.table(table).selectExpr(
            f"{topic} as topic", f"{partition} as partition", f"{position} as position", "step"
        )
        grouped = rows.groupBy("topic", "partition").agg(
            F.max("position").alias("position"), F.max("step").alias("step")
        )
        return grouped.select(F.lit(table), "topic", "partition", "position", "step")

    def append(self, table: str, rows: DataFrame, positions: dict[Partition, int], step: int) -> None:
        """Columns that `rows` lacks are null."""
        schema = self._schema(table)
        told = rows.withColumn("step", F.lit(step).cast("bigint"))
        if positions:
            places = [(topic, partition, offset, step) for (topic, partition), offset in positions.items()]
            told = told.unionByName(self.spark.createDataFrame(places, _PROGRESS), allowMissingColumns=True)
        filled = told.select(
            *(
                (F.col(field.name) if field.name in told.columns else F.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in schema.fields
            )
        )
        writer = filled.coalesce(1).write.format("delta").mode("append")
        writer.option("txnAppId", f"headrace-audit-{table}").option("txnVersion", step).save(self.path(table))

    def _schema(self, table: str) -> StructType:
        return self.table(table).schema

    def compact(self, step: int) -> None:
        """Now and then: every pass leaves a small file in each table."""
        if step % _COMPACT_EVERY == 0:
            for table in SCHEMAS:
                self.spark.sql(f"OPTIMIZE delta.`{self.path(table)}`")

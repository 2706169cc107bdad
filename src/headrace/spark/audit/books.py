"""The audit's own tables: events, tallies of the log, verdicts. Each is only ever appended to.

A row with a `position` says how far a partition of a topic was read; it is in the same commit as what was
read, so that nothing is taken twice or left out, whenever the audit is killed. Every commit carries the
number of its pass as Delta's transaction, so that of two audits on the same books one yields.
"""

from __future__ import annotations

from typing import Final

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

    def last_step(self) -> int:
        steps = [self.table(name).select(F.max("step").alias("step")) for name in SCHEMAS]
        row = steps[0].union(steps[1]).union(steps[2]).agg(F.max("step")).first()
        return 0 if row is None or row[0] is None else int(row[0])

    def positions(self, table: str) -> dict[Partition, int]:
        rows = (
            self.table(table)
            .where("position is not null")
            .groupBy("source_topic", "source_partition")
            .agg(F.max("position").alias("position"))
        )
        return {(row[0], row[1]): row[2] for row in rows.toLocalIterator()}

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

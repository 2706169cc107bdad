"""The audit's own tables: tallies of producers and of the log, and verdicts. Each is only ever appended to.

What a pass has read, how far it has read, and whom it has heard of are one commit, so that nothing is taken
twice or left out, whenever the audit is killed. Every commit carries the number of its pass as Delta's
transaction, so that of two audits on the same books one yields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.types import StructType

from headrace.audit.verdict import Verdict
from headrace.spark.audit.picture import Partition
from headrace.spark.audit.roster import Told

_CELL: Final = "topic string, partition int, window_ms bigint, count bigint, checksum string"
_PROGRESS: Final = "source_topic string, source_partition int, position bigint"
SCHEMAS: Final = {
    # Rows of three kinds: tallies; positions of topics that are read; what else is remembered, most of
    # it the roster of producers.
    "tallies": (
        f"told boolean, {_CELL}, uncertain bigint, last_offset bigint, asked_ms bigint, {_PROGRESS}, "
        "roster string, step bigint"
    ),
    "verdicts": (
        "topic string, window_ms bigint, window timestamp, state string, headline string, revision int, "
        "decided_ms bigint, tiers map<string, bigint>, document string, step bigint"
    ),
}
_TOLD: Final = f"{_CELL}, uncertain bigint, {_PROGRESS}, roster string"
_VERDICT: Final = (
    "topic string, window_ms bigint, state string, headline string, revision int, decided_ms bigint, "
    "tiers map<string, bigint>, document string"
)
_COMPACT_EVERY: Final = 50
#: The last millisecond of which Spark makes a timestamp: it counts microseconds in 64 bits.
LAST_MS: Final = (2**63 - 1) // 1_000


class Standing(NamedTuple):
    """The number of the last pass, how far every topic was read, and what else was written down."""

    step: int
    positions: dict[Partition, int]
    memory: str | None


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
        """In one look."""
        rows = self.table("tallies").select("source_topic", "source_partition", "position", "roster", "step")
        steps = self.table("verdicts").select("step")
        progress = (
            rows.unionByName(steps, allowMissingColumns=True)
            .groupBy("source_topic", "source_partition")
            .agg(
                F.max("position"),
                F.max_by("roster", F.when(F.col("roster").isNotNull(), F.col("step"))),
                F.max("step"),
            )
        )
        step, positions, memory = 0, {}, None
        for topic, partition, position, written, last in progress.toLocalIterator():
            step = max(step, last)
            if topic is None:
                memory = written
            else:
                positions[topic, partition] = position
        return Standing(step, positions, memory)

    def enter(
        self, log: DataFrame | None, told: Told, memory: str, positions: Mapping[Partition, int], step: int
    ) -> None:
        """What one pass has read, and how far."""
        lines: list[tuple[object, ...]] = [(*[None] * 9, memory)]
        lines += [(*[None] * 6, *place, position, None) for place, position in positions.items()]
        for cell in {*told.tallies, *told.uncertain}:
            tally = told.tallies[cell]
            lines.append((*cell, tally.count, tally.checksum, told.uncertain.get(cell, 0), *[None] * 4))
        rows = self.spark.createDataFrame(lines, _TOLD).withColumn("told", F.lit(True))
        if log is not None:
            rows = rows.unionByName(log.withColumn("told", F.lit(False)), allowMissingColumns=True)
        self._append("tallies", rows, step)

    def enter_verdicts(self, verdicts: list[Verdict], step: int) -> None:
        lines = [
            (
                verdict.topic,
                verdict.window_ms,
                verdict.state.value,
                verdict.headline,
                verdict.revision,
                verdict.decided_ms,
                {tier: tally.count for tier, tally in verdict.tiers.items()},
                verdict.encode().decode(),
            )
            for verdict in verdicts
        ]
        rows = self.spark.createDataFrame(lines, _VERDICT)
        # A client may have written nanoseconds: no timestamp of Spark's goes so far, and its window has none.
        within = F.col("window_ms").between(-LAST_MS, LAST_MS)
        window = F.when(within, F.timestamp_millis("window_ms"))
        self._append("verdicts", rows.withColumn("window", window), step)

    def last_verdicts(self) -> DataFrame:
        """topic, window_ms, and state, document and step of the last of each window."""
        newest = F.max_by(F.struct("state", "document", "step"), "step").alias("last")
        grouped = self.table("verdicts").groupBy("topic", "window_ms").agg(newest)
        return grouped.select("topic", "window_ms", "last.*")

    def _append(self, table: str, rows: DataFrame, step: int) -> None:
        """Columns that `rows` lacks are null."""
        told = rows.withColumn("step", F.lit(step).cast("bigint"))
        schema = StructType.fromDDL(SCHEMAS[table])
        assert isinstance(schema, StructType)
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

    def compact(self, step: int) -> None:
        """Now and then: every pass leaves a small file in each table."""
        if step % _COMPACT_EVERY == 0:
            for table in SCHEMAS:
                self.spark.sql(f"OPTIMIZE delta.`{self.path(table)}`")

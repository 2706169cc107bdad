"""An Iceberg table that changes by key. The step stands in the summary of the snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from headrace.spark.lake.tables.iceberg import PROPERTIES, SNAPSHOT_BATCH, SNAPSHOT_WRITER, IcebergTable
from headrace.spark.table.changes import DELETED
from headrace.spark.table.tables.keyed import WRITER, StepGone, commit, last_step, merge_sql, version_at

_VIEW: Final = "headrace_table_changes"
_PREFIX: Final = "spark.sql.iceberg.snapshot-property."


class KeyedIcebergTable(IcebergTable):
    def merge(self, changes: DataFrame, keys: Sequence[str], step: int, newer: str | None) -> None:
        spark = changes.sparkSession
        # Rows that come from a table of the catalog are a reference in the view; MERGE has no plan for that.
        changes.localCheckpoint().createOrReplaceTempView(_VIEW)
        spark.sql(f"REFRESH TABLE {self._sql}")
        names = [name for name in changes.columns if name != DELETED]
        with _noted(spark, step):
            spark.sql(merge_sql(self._sql, _VIEW, names, keys, newer))
        if last_step(self) < step:
            self.append(changes.drop(DELETED).limit(0), commit(step))

    def replace(self, rows: DataFrame, step: int) -> None:
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace_sql}")
        writer = (
            rows.writeTo(self._sql)
            .using("iceberg")
            .option(f"snapshot-property.{SNAPSHOT_WRITER}", WRITER)
            .option(f"snapshot-property.{SNAPSHOT_BATCH}", str(step))
        )
        for name, value in PROPERTIES.items():
            writer = writer.tableProperty(name, value)
        writer.createOrReplace()

    def at(self, step: int) -> DataFrame:
        # By their number and not by parents: a replacement has none.
        snapshots = sorted(self._loaded().snapshots(), key=lambda each: -int(each.sequenceNumber()))
        found = version_at(step, ((int(each.snapshotId()), _step(each)) for each in snapshots))
        if found is None:
            raise StepGone(f"{self.name}: no snapshot is of step {step} or before; it was expired")
        return self.spark.sql(f"SELECT * FROM {self._sql} VERSION AS OF {found}")


def _step(snapshot: Any) -> int | None:
    summary = snapshot.summary()
    return int(summary.get(SNAPSHOT_BATCH)) if summary.get(SNAPSHOT_WRITER) == WRITER else None


@contextmanager
def _noted(spark: SparkSession, step: int) -> Iterator[None]:
    """A MERGE takes no options; the session is the running query's own."""
    wanted = {f"{_PREFIX}{SNAPSHOT_WRITER}": WRITER, f"{_PREFIX}{SNAPSHOT_BATCH}": str(step)}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in wanted:
            spark.conf.unset(name)

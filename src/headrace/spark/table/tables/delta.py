"""A Delta table that changes by key. The step stands in the commit as Delta's own transaction number.

A repetition of a step is skipped by Delta itself, for a MERGE as for a write. The step is in the commit's
user metadata too, by which the version of a step is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from headrace.spark.lake.tables.delta import DeltaTable
from headrace.spark.table.changes import DELETED
from headrace.spark.table.tables.keyed import WRITER, StepGone, commit, last_step, merge_sql, version_at

_VIEW: Final = "headrace_table_changes"
_STEP: Final = "headrace-step="
_APP: Final = "spark.databricks.delta.write.txnAppId"
_VERSION: Final = "spark.databricks.delta.write.txnVersion"
_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
#: Commits since a step: more than maintenance can have put between two steps.
_LOOK_BACK: Final = 100


class KeyedDeltaTable(DeltaTable):
    def merge(self, changes: DataFrame, keys: Sequence[str], step: int, newer: str | None) -> None:
        spark = changes.sparkSession
        changes.createOrReplaceTempView(_VIEW)
        names = [name for name in changes.columns if name != DELETED]
        with _noted(spark, step):
            spark.sql(merge_sql(self._sql, _VIEW, names, keys, newer))
        if last_step(self) < step:  # nothing to change is no commit to Delta, and readers wait for the step
            with _noted(spark, step):
                self.append(changes.drop(DELETED).limit(0), commit(step))

    def replace(self, rows: DataFrame, step: int) -> None:
        # One that has the step already is made anew within it. Delta would skip the number as a repetition.
        numbered = last_step(self) < step
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        if numbered:
            writer = writer.option("txnAppId", WRITER).option("txnVersion", str(step))
        with _noted(rows.sparkSession, step, numbered=numbered):
            writer.save(self.path)

    def at(self, step: int) -> DataFrame:
        history = self.spark.sql(f"DESCRIBE HISTORY {self._sql} LIMIT {_LOOK_BACK}")
        rows = history.select("version", "userMetadata").orderBy(history.version.desc()).collect()
        found = version_at(step, ((row["version"], _step(row["userMetadata"])) for row in rows))
        if found is None:
            raise StepGone(f"{self.path}: none of the last {_LOOK_BACK} versions is of step {step} or before")
        return self.spark.read.format("delta").option("versionAsOf", found).load(self.path)


def _step(noted: str | None) -> int | None:
    return int(noted.removeprefix(_STEP)) if noted is not None and noted.startswith(_STEP) else None


@contextmanager
def _noted(spark: SparkSession, step: int, *, numbered: bool = True) -> Iterator[None]:
    """For a MERGE Delta takes these from the session, which is the running query's own."""
    wanted = {_METADATA: f"{_STEP}{step}"}
    if numbered:
        wanted |= {_APP: WRITER, _VERSION: str(step)}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in wanted:
            spark.conf.unset(name)

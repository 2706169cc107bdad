"""A Delta table. A commit's writer and batch stand in Delta's own log, in the same entry as its files.

Delta keeps the last `txnVersion` of each `txnAppId` for as long as the table lives, through checkpoints of
the log, VACUUM and OPTIMIZE. A write with one that is not above it is skipped; of two that run at the same
time, one fails. So a batch is there once, whoever repeats it and whenever it was cut off.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headrace.spark.decoding.evolution import WidenColumn
from headrace.spark.lake.config import Maintenance
from headrace.spark.lake.table_schema import Following, statements
from headrace.spark.lake.tables.appends import Appends
from headrace.spark.lake.tables.delta_actions import add_file, transaction
from headrace.spark.lake.tables.landing import LandedFile, Landing, Unsuitable, codec_of
from headrace.spark.lake.tables.matching import same_record
from headrace.spark.lake.tables.table import Commit, Upkeep

_WIDENING: Final = "delta.enableTypeWidening"
"""Set when a column is first widened: readers that do not know it refuse a table that has it, widened or
not, and those are all but Spark's own."""
_APPENDS: Final = Appends()


class DeltaTable:
    scale_may_grow = True

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.path = path

    @property
    def name(self) -> str:
        return self.path

    @property
    def _sql(self) -> str:
        return f"delta.`{self.path}`"

    def _snapshot(self) -> Any:
        jvm: Any = self.spark._jvm
        none = jvm.scala.Option.empty()
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.spark._jsparkSession, self.path)
        return log.update(False, none, none)

    def schema(self) -> StructType | None:
        snapshot = self._snapshot()
        return None if snapshot.version() < 0 else _schema(snapshot.schema().json())

    def create(self, schema: StructType) -> None:
        empty = self.spark.createDataFrame([], schema)
        empty.write.format("delta").mode("ignore").save(self.path)

    def change(self, following: Following) -> None:
        if any(isinstance(change, WidenColumn) for change in following.changes) and not self._widens():
            self.spark.sql(f"ALTER TABLE {self._sql} SET TBLPROPERTIES ('{_WIDENING}' = 'true')")
        for statement in statements(self._sql, following.changes):
            self.spark.sql(statement)

    def _widens(self) -> bool:
        found = self._snapshot().metadata().configuration().get(_WIDENING)
        return bool(found.isDefined() and found.get() == "true")

    def last(self, writer: str) -> int:
        found = self._snapshot().transactions().get(writer)
        return int(found.get()) if found.isDefined() else -1

    def recover(self, writer: str) -> None:
        """Files of a write that was not committed are in no log entry, and VACUUM removes them."""

    def append(self, frame: DataFrame, commit: Commit) -> None:
        with _APPENDS.under_way(self.path):
            (
                frame.write.format("delta")
                .mode("append")
                .option("txnAppId", commit.writer)
                .option("txnVersion", str(commit.batch))
                .save(self.path)
            )

    def landing(self, commit: Commit) -> Landing:
        metadata = self._snapshot().metadata()
        if not metadata.partitionColumns().isEmpty():
            raise Unsuitable(
                f"{self.path} is partitioned by columns: only Spark can write it, as `lake run` does"
            )
        if metadata.columnMappingMode().name() != "none":
            raise Unsuitable(
                f"{self.path} has delta.columnMapping.mode: only Spark can write it, as `lake run` does"
            )
        return Landing(self.path, f"{commit.writer}-{commit.batch:012d}", codec_of(self.spark))

    def add(self, landing: Landing, files: Sequence[LandedFile], commit: Commit) -> None:  # noqa: ARG002 - they lie beside the others
        jvm: Any = self.spark._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.spark._jsparkSession, self.path)
        with _APPENDS.under_way(self.path):
            entry = log.startTransaction()
            if entry.txnVersion(commit.writer) >= commit.batch:
                return
            now_ms = int(time.time() * 1000)
            lines = [transaction(commit, now_ms), *(add_file(file, now_ms) for file in files)]
            entry.commit(self._actions(lines), self._appending())

    def _actions(self, lines: Sequence[str]) -> Any:
        jvm: Any = self.spark._jvm
        actions = jvm.java.util.ArrayList()
        for line in lines:
            actions.add(jvm.org.apache.spark.sql.delta.actions.Action.fromJson(line))
        return jvm.org.apache.spark.api.python.PythonUtils.toSeq(actions)

    def _appending(self) -> Any:
        """The operation that the table's history shows, the same as for Spark's own appends."""
        jvm: Any = self.spark._jvm
        none = jvm.scala.Option.empty()
        mode = jvm.org.apache.spark.sql.SaveMode.Append
        operation = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
        return operation(mode, *(none for _ in range(8)))

    def read(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.path)

    def remove(self, keys: DataFrame) -> None:
        keys.createOrReplaceTempView("headrace_lake_keys")
        self.spark.sql(
            f"MERGE INTO {self._sql} AS old USING headrace_lake_keys AS gone ON {same_record('old', 'gone')} "
            "WHEN MATCHED THEN DELETE"
        )

    def maintain(self, settings: Maintenance) -> Upkeep:
        """OPTIMIZE rearranges rows and adds none, so it meets no append as a conflict."""
        before = int(self._snapshot().numOfFiles())
        wanted = {
            "spark.databricks.delta.optimize.minFileSize": str(settings.small_file_bytes),
            "spark.databricks.delta.optimize.maxFileSize": str(settings.target_file_bytes),
            # The configuration says how long old versions are wanted; Delta's own floor is a week.
            "spark.databricks.delta.retentionDurationCheck.enabled": "false",
            # VACUUM lists directories in so many tasks, 10,000 by default, however few there are.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(
                4 * self.spark.sparkContext.defaultParallelism
            ),
        }
        for name, value in wanted.items():
            self.spark.conf.set(name, value)
        if before >= settings.least_files:
            self.spark.sql(f"OPTIMIZE {self._sql}")
        kept = max(settings.keep_seconds, _APPENDS.longest(self.path))
        self.spark.sql(f"VACUUM {self._sql} RETAIN {kept / 3600:.6f} HOURS")
        return Upkeep(before, int(self._snapshot().numOfFiles()), None)


def _schema(text: str) -> StructType:
    return StructType.fromJson(json.loads(text))

"""An Iceberg table. A commit's writer and batch stand in the summary of the snapshot that it makes.

Snapshots are expired, by `lake maintain` and by other people's tools. So maintenance first copies the last
batch of each writer into the table's properties, and whoever starts can also look for the rows themselves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headrace.spark.lake.config import Maintenance
from headrace.spark.lake.table_schema import Following, quoted, statements
from headrace.spark.lake.tables.landing import LandedFile, Landing, Unsuitable, codec, field_ids
from headrace.spark.lake.tables.matching import same_record
from headrace.spark.lake.tables.table import Commit, Upkeep

SNAPSHOT_WRITER: Final = "headrace.writer"
SNAPSHOT_BATCH: Final = "headrace.batch"
PROPERTIES: Final = {
    "format-version": "2",
    # Every commit writes the table's metadata anew; without this each of them stays for good.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_CODEC: Final = "zstd"
"""Iceberg's own default."""
#: Files without a snapshot may belong to a write that is under way; three days is Iceberg's own caution.
_ORPHAN_SECONDS: Final = 3 * 86_400


class IcebergTable:
    scale_may_grow = False

    def __init__(self, spark: SparkSession, catalog: str, namespace: str, table: str) -> None:
        self.spark = spark
        self.catalog = catalog
        self.namespace = namespace
        self.table = table

    @property
    def name(self) -> str:
        return f"{self.catalog}.{self.namespace}.{self.table}"

    @property
    def _namespace_sql(self) -> str:
        return ".".join(quoted(part) for part in (self.catalog, *self.namespace.split(".")))

    @property
    def _sql(self) -> str:
        return f"{self._namespace_sql}.{quoted(self.table)}"

    def _loaded(self) -> Any:
        """Iceberg's own table, as it is now and not as this session last saw it."""
        jvm: Any = self.spark._jvm
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self._sql)
        table.refresh()
        return table

    def _exists(self) -> bool:
        return bool(self.spark.catalog.tableExists(self._sql))

    def schema(self) -> StructType | None:
        if not self._exists():
            return None
        jvm: Any = self.spark._jvm
        found = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(self._loaded().schema())
        return StructType.fromJson(json.loads(found.json()))

    def create(self, schema: StructType) -> None:
        if self._exists():
            return
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace_sql}")
        empty = self.spark.createDataFrame([], schema)
        writer = empty.writeTo(self._sql)
        for name, value in PROPERTIES.items():
            writer = writer.tableProperty(name, value)
        writer.create()

    def change(self, following: Following) -> None:
        for statement in statements(self._sql, following.changes):
            self.spark.sql(statement)

    def last(self, writer: str) -> int:
        table = self._loaded()
        return max(_remembered(table, writer), _last_batch(table, writer))

    def recover(self, writer: str) -> None:
        """Files of a write that was not committed are in no snapshot; maintenance removes them."""

    def append(self, frame: DataFrame, commit: Commit) -> None:
        (
            frame.writeTo(self._sql)
            .option(f"snapshot-property.{SNAPSHOT_WRITER}", commit.writer)
            .option(f"snapshot-property.{SNAPSHOT_BATCH}", str(commit.batch))
            .append()
        )

    def landing(self, commit: Commit) -> Landing:
        jvm: Any = self.spark._jvm
        table = self._loaded()
        if not table.spec().isUnpartitioned():
            raise Unsuitable(f"{self.name} is partitioned: only Spark can write it, as `lake run` does")
        prefix = f"{commit.writer}-{commit.batch:012d}"
        directory = str(table.locationProvider().newDataLocation(prefix)).rpartition("/")[0]
        numbers = field_ids(json.loads(jvm.org.apache.iceberg.SchemaParser.toJson(table.schema())))
        chosen = table.properties().get("write.parquet.compression-codec")
        return Landing(directory, prefix, codec(chosen or _CODEC), numbers)

    def add(self, landing: Landing, files: Sequence[LandedFile], commit: Commit) -> None:
        """Statistics are what Iceberg finds in the files."""
        jvm: Any = self.spark._jvm
        iceberg = jvm.org.apache.iceberg
        table = self._loaded()
        wanted = iceberg.MetricsConfig.forTable(table)
        append = table.newAppend()
        for file in files:
            found = table.io().newInputFile(f"{landing.directory}/{file.name}")
            entry = iceberg.DataFiles.builder(table.spec()).withInputFile(found).withFormat("parquet")
            append.appendFile(
                entry.withMetrics(iceberg.parquet.ParquetUtil.fileMetrics(found, wanted)).build()
            )
        append.set(SNAPSHOT_WRITER, commit.writer)
        append.set(SNAPSHOT_BATCH, str(commit.batch))
        append.commit()

    def read(self) -> DataFrame:
        """As it is now. A session keeps a table as it last saw it, and queries have sessions of their own."""
        self.spark.sql(f"REFRESH TABLE {self._sql}")
        return self.spark.table(self._sql)

    def remove(self, keys: DataFrame) -> None:
        # Keys that come from a table of the catalog are a reference in the view, for which MERGE has no plan.
        keys.localCheckpoint().createOrReplaceTempView("headrace_lake_keys")
        self.spark.sql(
            f"MERGE INTO {self._sql} AS old USING headrace_lake_keys AS gone ON {same_record('old', 'gone')} "
            "WHEN MATCHED THEN DELETE"
        )

    def maintain(self, settings: Maintenance) -> Upkeep:
        # Taken before anything is looked at: what is committed from now on is younger, and stays.
        now = time.time()
        table = self._loaded()
        before = _files(table)
        self._remember_batches(table)
        options = {
            "target-file-size-bytes": settings.target_file_bytes,
            "min-file-size-bytes": settings.small_file_bytes,
            "max-file-size-bytes": settings.target_file_bytes * 2,
            "min-input-files": settings.least_files,
        }
        pairs = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
        self._call("rewrite_data_files", f"options => map({pairs})")
        old = _moment(now - settings.keep_seconds)
        expired = self._call("expire_snapshots", f"older_than => TIMESTAMP '{old}', retain_last => 1")
        orphans = _moment(now - max(settings.keep_seconds, _ORPHAN_SECONDS))
        self._call("remove_orphan_files", f"older_than => TIMESTAMP '{orphans}'")
        row = expired.first()
        removed = 0 if row is None else sum(int(value or 0) for value in row)
        return Upkeep(before, _files(self._loaded()), removed)

    def _call(self, procedure: str, arguments: str) -> DataFrame:
        name = ".".join(quoted(part) for part in (*self.namespace.split("."), self.table))
        return self.spark.sql(
            f"CALL {quoted(self.catalog)}.system.{procedure}(table => '{name}', {arguments})"
        )

    def _remember_batches(self, table: Any) -> None:
        """Before any snapshot goes: each writer's last batch, where no expiry reaches it."""
        last: dict[str, int] = {}
        for snapshot in table.snapshots():
            summary = snapshot.summary()
            writer = summary.get(SNAPSHOT_WRITER)
            if writer is not None:
                last[writer] = max(last.get(writer, -1), int(summary.get(SNAPSHOT_BATCH)))
        newer = {writer: batch for writer, batch in last.items() if batch > _remembered(table, writer)}
        if newer:
            update = table.updateProperties()
            for writer, batch in newer.items():
                update.set(_property(writer), str(batch))
            update.commit()


def _property(writer: str) -> str:
    return f"{SNAPSHOT_BATCH}.{writer}"


def _remembered(table: Any, writer: str) -> int:
    found = table.properties().get(_property(writer))
    return -1 if found is None else int(found)


def _last_batch(table: Any, writer: str) -> int:
    """Of the youngest snapshot by this writer, from the current one back."""
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        summary = snapshot.summary()
        if summary.get(SNAPSHOT_WRITER) == writer:
            return int(summary.get(SNAPSHOT_BATCH))
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)
    return -1


def _files(table: Any) -> int:
    snapshot = table.currentSnapshot()
    return 0 if snapshot is None else int(snapshot.summary().get("total-data-files") or 0)


def _moment(seconds: float) -> str:
    """With its zone: the session may have another."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))

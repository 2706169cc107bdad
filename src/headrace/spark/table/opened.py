"""The tables of one specification, and how those that are derived are made whole."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.table_schema import quoted
from headrace.spark.table import derived
from headrace.spark.table.config import TableSpec
from headrace.spark.table.tables.keyed import KeyedTable
from headrace.spark.table.tables.opening import open_table


class Opened:
    """Opened by name as they are needed; none need exist yet."""

    def __init__(self, spark: SparkSession, store: LakeConfig, spec: TableSpec) -> None:
        self.spark = spark
        self.store = store
        self.spec = spec
        self.main = self.open(spec.name)
        self.dead = self.open(spec.dead_letters)

    def open(self, name: str) -> KeyedTable:
        return open_table(self.spark, self.store, name)

    def derive(self, names: list[str], step: int) -> None:
        """Whole, from the table as it is now, which is at `step`."""
        for view in self.spec.views:
            if view.name in names:
                index = next(each for each in self.spec.indexes if each.name == view.index)
                self.open(view.name).replace(derived.view_rows(self.main.read(), view, index), step)
        for index in self.spec.indexes:
            if index.name in names:
                rows = derived.index_rows(self.main.read(), self.spec, index)
                # In order, so that whoever looks for a value can pass over most files.
                self.open(index.name).replace(rows.orderBy(*(quoted(each) for each in index.columns)), step)

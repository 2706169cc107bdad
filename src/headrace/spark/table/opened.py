"""The tables of one specification, and how those that are derived are made whole."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.table_schema import quoted
from headrace.spark.table import derived
from headrace.spark.table.config import TableSpec
from headrace.spark.table.plan import derived_definitions
from headrace.spark.table.tables.keyed import KeyedTable, last_step
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

    def last_of_all(self) -> int:
        """No new lineage may use a step again that any of the tables has, dead letters included."""
        names = (self.spec.name, self.spec.dead_letters, *derived_definitions(self.spec))
        return max(0, *(last_step(self.open(name)) for name in names))

    def empty_derived(self, step: int) -> bool:
        """Where the table itself is gone: what is derived begins with nothing too. Whether there was any."""
        found = False
        for name in derived_definitions(self.spec):
            table = self.open(name)
            schema = table.schema()
            if schema is not None:
                table.replace(self.spark.createDataFrame([], schema), step)
                found = True
        return found

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

"""The tables of one specification, and how those that are derived are made whole."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.table_schema import quoted
from headrace.spark.table import derived
from headrace.spark.table.computing import NotComputed, computed
from headrace.spark.table.config import IndexSpec, TableSpec, ViewSpec
from headrace.spark.table.plan import derived_definitions
from headrace.spark.table.tables.keyed import KeyedTable, last_step
from headrace.spark.table.tables.opening import open_table

_log = logging.getLogger(__name__)


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

    def derive(self, names: list[str], step: int) -> dict[str, str]:
        """Whole, from the table as it is now, which is at `step`.

        Those of the views that cannot be computed stay as they are; says why.
        """
        behind = {}
        for view in self.spec.views:
            if view.name in names:
                try:
                    self.derive_view(view, step)
                except NotComputed as error:
                    _log.error("%s: %s", self.spec.name, error)
                    behind[view.name] = str(error)
        for index in self.spec.indexes:
            if index.name in names:
                rows = derived.index_rows(self.main.read(), self.spec, index)
                # In order, so that whoever looks for a value can pass over most files.
                self.open(index.name).replace(rows.orderBy(*(quoted(each) for each in index.columns)), step)
        return behind

    def index_of(self, view: ViewSpec) -> IndexSpec:
        return next(each for each in self.spec.indexes if each.name == view.index)

    def derive_view(self, view: ViewSpec, step: int) -> None:
        with computed(derived.view_rows(self.main.read(), view, self.index_of(view)), view) as rows:
            self.open(view.name).replace(rows, step)

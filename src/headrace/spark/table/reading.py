"""A table, its indexes and its views as of one step.

Each table is right by itself at any time. A reader who joins them wants the same step of each: the youngest
that all have. The table is at most one step ahead of what is derived from it, so this is at most one batch
old.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from headrace.core.errors import HeadraceError
from headrace.spark.table.config import TableConfig
from headrace.spark.table.plan import derived_definitions
from headrace.spark.table.tables.keyed import last_step
from headrace.spark.table.tables.opening import open_table


class NotYet(HeadraceError):
    """A table has no step yet."""


def as_of_one_step(spark: SparkSession, config: TableConfig, name: str) -> dict[str, DataFrame]:
    """By name, the table first."""
    spec = config.table(name)
    names = [name, *derived_definitions(spec)]
    tables = {each: open_table(spark, config.store, each) for each in names}
    step = min(last_step(table) for table in tables.values())
    if step < 0:
        raise NotYet(f"not all of {', '.join(names)} are made yet; `headrace table run --once` makes them")
    return {each: table.at(step) for each, table in tables.items()}

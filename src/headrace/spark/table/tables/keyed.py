"""What is asked of a table beside what the lake asks: changes by key, one whole replacement, old steps.

Every commit has a number, its step, under one writer's name. The same step has the same number in the table,
in its indexes and in its views.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from pyspark.sql import DataFrame

from headrace.core.errors import HeadraceError
from headrace.spark.lake.table_schema import quoted
from headrace.spark.lake.tables.table import Commit, Table
from headrace.spark.table.changes import DELETED

WRITER: Final = "headrace-table"


class StepGone(HeadraceError):
    """A version that readers need is no longer there; says why."""


class KeyedTable(Table, Protocol):
    """`merge` and `replace` are atomic."""

    def merge(self, changes: DataFrame, keys: Sequence[str], step: int, newer: str | None) -> None:
        """One row of `changes` for each key: deleted where DELETED is true, else as it stands there.

        `newer` is a condition on `old` and `new`; where it does not hold, a row that is there stays.
        """
        ...

    def replace(self, rows: DataFrame, step: int) -> None:
        """All rows, and the columns too, in one commit. Makes the table where it does not exist."""
        ...

    def at(self, step: int) -> DataFrame:
        """As it was after `step`, or after the last one before it."""
        ...


def version_at(step: int, commits: Iterable[tuple[int, int | None]]) -> int | None:
    """The youngest version without any later step. `commits` are versions and steps, the youngest first.

    Commits without a step are maintenance: they change no row, and what they left behind may be deleted.
    """
    found: int | None = None
    for version, noted in commits:
        found = version if found is None else found
        if noted is not None:
            if noted <= step:
                return found
            found = None
    return found


def last_step(table: Table) -> int:
    return -1 if table.schema() is None else table.last(WRITER)


def commit(step: int) -> Commit:
    return Commit(WRITER, step)


def merge_sql(table: str, changes: str, names: Sequence[str], keys: Sequence[str], newer: str | None) -> str:
    """The same SQL for Delta and for Iceberg. `table` and `changes` are quoted already."""
    same = " AND ".join(f"old.{quoted(name)} = new.{quoted(name)}" for name in keys)
    guard = f" AND {newer}" if newer is not None else ""
    sets = ", ".join(f"{quoted(name)} = new.{quoted(name)}" for name in names)
    listed = ", ".join(quoted(name) for name in names)
    values = ", ".join(f"new.{quoted(name)}" for name in names)
    return (
        f"MERGE INTO {table} AS old USING {changes} AS new ON {same} "
        f"WHEN MATCHED{guard} AND new.{DELETED} THEN DELETE "
        f"WHEN MATCHED{guard} THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT new.{DELETED} THEN INSERT ({listed}) VALUES ({values})"
    )

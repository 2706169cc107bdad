"""Indexes and views: what their rows are, as a whole and for the changes of one batch. Nothing runs here.

An index has one row for each row of its table whose columns of the index are not null. It has the table's key
and the place of the record, so a change of the table is a change of the index by the same key and the same
guard, once what the table left out is left out: the rows before it need not be known.

A view has one row for each value of an index's columns. A batch touches the values that its keys had before,
which the index still has while it is one step behind, and those that they have now. The rows of these values
are computed anew from the table.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from headrace.spark import columns
from headrace.spark.lake.table_schema import quoted
from headrace.spark.table.changes import DELETED, NoSuchColumn, field_of, place_sql
from headrace.spark.table.config import IndexSpec, TableSpec, ViewSpec

_PLACE = (columns.TOPIC, columns.PARTITION, columns.OFFSET, columns.TIMESTAMP)


def index_columns(spec: TableSpec, index: IndexSpec) -> list[str]:
    """Those that are looked for come first, then the key, then what is wanted with it, then the place."""
    wanted = (*index.columns, *spec.key_columns, *index.include, *_PLACE)
    return list(dict.fromkeys(wanted))


def _present(names: tuple[str, ...]) -> Column:
    present = sf.lit(True)
    for name in names:
        present = present & sf.col(quoted(name)).isNotNull()
    return present


def index_rows(table: DataFrame, spec: TableSpec, index: IndexSpec) -> DataFrame:
    """Of the whole table."""
    names = index_columns(spec, index)
    for name in names:
        field_of(table.schema, name, spec.name)
    return table.filter(_present(index.columns)).select(*(quoted(name) for name in names))


def accepted(changes: DataFrame, table: DataFrame, spec: TableSpec) -> DataFrame:
    """Without those that the table left out for a later record of the key. `table` is with the batch.

    An index cannot tell by itself: it has no row for a key whose columns of the index are null in the table.
    """
    same = [f"old.{quoted(name)} = new.{quoted(name)}" for name in spec.key_columns]
    later = f"{place_sql(spec.order, 'old')} > {place_sql(spec.order, 'new')}"
    return changes.alias("new").join(table.alias("old"), sf.expr(" AND ".join((*same, later))), "left_anti")


def index_changes(changes: DataFrame, spec: TableSpec, index: IndexSpec) -> DataFrame:
    gone = sf.col(DELETED) | ~_present(index.columns)
    names = index_columns(spec, index)
    for name in names:
        field_of(changes.schema, name, spec.name)
    return changes.select(*(quoted(name) for name in names), gone.alias(DELETED))


def view_rows(table: DataFrame, view: ViewSpec, index: IndexSpec) -> DataFrame:
    """Of all of `table`'s rows."""
    for name in index.columns:
        field_of(table.schema, name, view.index)
    made = (
        table.filter(_present(index.columns))
        .groupBy(*(quoted(name) for name in index.columns))
        .agg(*(sf.expr(each) for each in view.columns))
    )
    lowered = [name.lower() for name in made.columns]
    for name in made.columns:
        taken = lowered.count(name.lower()) > 1 or name.lower() == DELETED
        if taken or not name.replace("_", "").isalnum():
            raise NoSuchColumn(f"{view.name}: {name!r} is no name for a column; write `... AS name`")
    return made


def touched(changes: DataFrame, before: DataFrame, spec: TableSpec, index: IndexSpec) -> DataFrame:
    """The values of the index's columns that a batch touches. `before` is the index without the batch."""
    names = [quoted(name) for name in index.columns]
    keys = changes.select(*(quoted(name) for name in spec.key_columns))
    old = before.join(keys, list(spec.key_columns), "left_semi").select(*names)
    new = changes.filter(~sf.col(DELETED) & _present(index.columns)).select(*names)
    return old.unionByName(new).distinct()


def view_changes(table: DataFrame, values: DataFrame, view: ViewSpec, index: IndexSpec) -> DataFrame:
    """For each of `values` its row now, or that it has none any more. `table` is with the batch."""
    names = list(index.columns)
    rows = view_rows(table.join(values, names, "left_semi"), view, index).withColumn(DELETED, sf.lit(False))
    found = values.join(rows, names, "left")
    return found.withColumn(DELETED, sf.coalesce(sf.col(DELETED), sf.lit(True)))

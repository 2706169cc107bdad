"""Frames that are computed once, and columns that cannot be computed from the values that there are.

Spark computes SQL as ANSI has it: a sum that does not fit is an error, and so is the number of a text that is
none. One record is enough. It must stop neither the table nor the indexes, so errors of values are told apart
from all others: a store that cannot be read, or a job that was lost, says nothing of a view.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as JvmColumn

from headrace.core.errors import HeadraceError
from headrace.spark.lake.failures import short
from headrace.spark.table.config import ViewSpec


class NotComputed(HeadraceError):
    """Says which view, and what to write instead."""


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Computed once, however often it is looked at: a MERGE does so two or three times."""
    held = frame.persist()
    try:
        yield held
    finally:
        held.unpersist()


@contextmanager
def computed(rows: DataFrame, view: ViewSpec) -> Iterator[DataFrame]:
    """Kept, and computed before anything is written: what fails here are the view's columns, or reading."""
    with kept(rows) as held:
        try:
            held.count()
        except Exception as error:
            said = _said_of_values(error, rows.sparkSession)
            if said is None:
                raise
            raise NotComputed(
                f"view {view.name} cannot be computed and stays as it is: {short(said)} Write columns that "
                "take such values, as try_sum instead of sum, or correct the record. It is tried again with "
                "each batch and at each start"
            ) from None
        yield held


def attempted(column: Column, spark: SparkSession) -> Column:
    """The same column, null where it cannot be computed. Spark has it, for try_cast and the like only."""
    jvm: Any = spark._jvm
    conversions = jvm.org.apache.spark.sql.classic.ExpressionUtils
    expression: Any = conversions.expression(column._jc)
    return JvmColumn(conversions.column(jvm.org.apache.spark.sql.catalyst.expressions.TryEval(expression)))


def _said_of_values(error: Exception, spark: SparkSession) -> str | None:
    """None where it is of anything else. The first cause that Spark has a state for decides."""
    gateway = spark.sparkContext._gateway
    found: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while found is not None:
        if is_instance_of(gateway, found, "org.apache.spark.SparkThrowable"):
            state = found.getSqlState()
            if state is not None:
                return str(found.getMessage()) if is_of_values(state) else None
        found = found.getCause()
    return None


def is_of_values(state: str) -> bool:
    """Class 22 of the standard's states are errors of data.

    P0001 is what `raise_error` raises, and 42601 at this time a text that has not the format of `to_number`.
    """
    return state.startswith("22") or state in ("P0001", "42601")

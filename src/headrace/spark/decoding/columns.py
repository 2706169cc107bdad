"""The two columns that decoding adds to a frame, and how they stay cheap.

`decoded` is a struct, or null where there is nothing to decode or decoding failed. `problem` is null where
all is well, else the reason in words. A record without a value (a tombstone) has neither: nothing is wrong
with it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

DECODED: Final = "decoded"
PROBLEM: Final = "problem"
#: The parser's own answer, between the two projections. Never leaves this package.
PARSED: Final = "__parsed"


def evaluated_once(column: Column) -> Column:
    """The same column, which Spark does not push through the projection that makes it.

    A filter on `problem` would otherwise be moved below the parser and bring its own copy of it: each record
    would be parsed twice. Spark moves no filter past an expression that it holds for not deterministic, and
    the number of a partition is the cheapest of those.
    """
    return sf.when(sf.spark_partition_id() >= 0, column)


def with_columns(
    frame: DataFrame, *, parsed: Column, problem: Column, good: Column, decoded: Column
) -> DataFrame:
    """The frame with both columns. All but `parsed` are made from PARSED, which is not kept.

    The parser stands in a projection of its own: Spark does not repeat it for each use of its answer. `good`
    says the same as "no problem and a value", but without a third projection that would copy each record.
    """
    added = {DECODED: sf.when(good, decoded), PROBLEM: evaluated_once(problem)}
    return frame.withColumn(PARSED, parsed).withColumns(added).drop(PARSED)

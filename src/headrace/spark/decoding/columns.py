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
#: The parser's own answer, the same where it is good and else null, and whether there was nothing to parse.
#: They stand between the projections and never leave this package.
PARSED: Final = "__parsed"
KEPT: Final = "__kept"
_ABSENT: Final = "__absent"


def evaluated_once(column: Column) -> Column:
    """The same column, which Spark does not push through the projection that makes it.

    A filter on `problem` would otherwise be moved below the parser and bring its own copy of it: each record
    would be parsed twice. Spark moves no filter past an expression that it holds for not deterministic, and
    the number of a partition is the cheapest of those.
    """
    return sf.when(sf.spark_partition_id() >= 0, column)


def with_columns(
    frame: DataFrame, *, value: Column, parsed: Column, good: Column, decoded: Column, reason: Column
) -> DataFrame:
    """The frame with both columns. `good` and `reason` are made from PARSED, `decoded` from PARSED or KEPT.

    The parser stands in a projection of its own: Spark does not repeat it for each use of its answer. So does
    KEPT: it is a reference to the answer, and a field of `decoded` is then taken from there, without a struct
    being made for each record in between.

    `reason` is asked for only where a record is not good, and is never null there. Spark sees that by itself:
    it turns "problem is null" into "good, or nothing to parse", and then the reason is in no plan that reads
    only good records. To that end the last resort of `reason` is a literal, and the choice below has two
    sides, of which one is a literal.
    """
    made = {PARSED: evaluated_once(parsed), _ABSENT: value.isNull()}
    problem = sf.when(sf.col(_ABSENT) | good, sf.lit(None)).otherwise(reason)
    kept = evaluated_once(sf.when(good, sf.col(PARSED)))
    whole = frame.withColumns(made).withColumn(KEPT, kept)
    return whole.withColumns({DECODED: decoded, PROBLEM: problem}).drop(PARSED, KEPT, _ABSENT)

"""Functions of Arrow arrays as columns: one column goes to Python and back, the others stay in the JVM."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType


def arrow_column(function: Callable[[pa.Array], pa.Array], value: Column, answer: DataType) -> Column:
    """`function` of `value`. Spark holds it for not deterministic, so that no filter brings a second copy."""

    # Spark finds out by the types of its argument and answer which kind of function it is.
    def typed(values: pa.Array) -> pa.Array:
        return function(values)

    made = arrow_udf(typed, answer)  # type: ignore[call-overload]  # its types know only the form that warns
    column: Column = made.asNondeterministic()(value)
    return column

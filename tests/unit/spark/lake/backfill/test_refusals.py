"""Tables that only Spark can write are refused, with what works."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.spark.lake.backfill.refusals import check_columns
from headrace.spark.lake.table_schema import follow
from headrace.spark.lake.tables.landing import Unsuitable

INCOMING = StructType([StructField("partition", IntegerType()), StructField("value", BinaryType())])


def check(table: StructType) -> None:
    check_columns("orders", INCOMING, follow(table, INCOMING))


def test_a_table_may_have_more_columns() -> None:
    check(INCOMING)
    check(StructType([StructField("more", TimestampType()), *INCOMING.fields]))


def test_a_column_that_was_widened_is_refused() -> None:
    wide = StructType([StructField("partition", LongType()), StructField("value", BinaryType())])
    with pytest.raises(Unsuitable, match=r"has partition as bigint, .* int; `headrace lake run`"):
        check(wide)


def test_a_column_that_is_something_else_is_refused() -> None:
    other = StructType([StructField("partition", IntegerType()), StructField("value", TimestampType())])
    with pytest.raises(Unsuitable, match=r"orders cannot take the records: .*value"):
        check(other)
    check(StructType([StructField("name", StringType())]))

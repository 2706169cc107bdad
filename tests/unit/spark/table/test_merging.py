"""The statement that changes a table by key."""

from __future__ import annotations

from headrace.spark.table.changes import place_sql
from headrace.spark.table.config import Order
from headrace.spark.table.tables.keyed import merge_sql


def test_every_name_is_quoted_and_the_guard_stands_before_both_changes() -> None:
    said = merge_sql("t", "c", ["a b", "n"], ["a b"], "new.n > old.n")
    assert said == (
        "MERGE INTO t AS old USING c AS new ON old.`a b` = new.`a b` "
        "WHEN MATCHED AND new.n > old.n AND new.__deleted THEN DELETE "
        "WHEN MATCHED AND new.n > old.n THEN UPDATE SET `a b` = new.`a b`, `n` = new.`n` "
        "WHEN NOT MATCHED AND NOT new.__deleted THEN INSERT (`a b`, `n`) VALUES (new.`a b`, new.`n`)"
    )
    assert "WHEN MATCHED AND new.__deleted" in merge_sql("t", "c", ["k"], ["k"], None)


def test_the_order_of_records() -> None:
    assert place_sql(Order.OFFSET, "new") == "struct(new.partition, new.offset)"
    assert place_sql(Order.TIMESTAMP) == "struct(timestamp, partition, offset)"

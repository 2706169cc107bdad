"""The statement that changes a table by key."""

from __future__ import annotations

import pytest

from headrace.spark.table.changes import place_sql
from headrace.spark.table.config import Order
from headrace.spark.table.tables.keyed import merge_sql, version_at


def test_every_name_is_quoted_and_the_guard_stands_before_both_changes() -> None:
    said = merge_sql("t", "c", ["a b", "n"], ["a b"], "new.n > old.n")
    assert said == (
        "MERGE INTO t AS old USING c AS new ON old.`a b` = new.`a b` "
        "WHEN MATCHED AND new.n > old.n AND new.__headrace_deleted THEN DELETE "
        "WHEN MATCHED AND new.n > old.n THEN UPDATE SET `a b` = new.`a b`, `n` = new.`n` "
        "WHEN NOT MATCHED AND NOT new.__headrace_deleted THEN INSERT (`a b`, `n`) VALUES (new.`a b`, new.`n`)"
    )
    assert "WHEN MATCHED AND new.__headrace_deleted" in merge_sql("t", "c", ["k"], ["k"], None)


def test_the_order_of_records() -> None:
    assert place_sql(Order.OFFSET, "new") == "struct(new.partition, new.offset)"
    assert place_sql(Order.TIMESTAMP) == "struct(timestamp, partition, offset)"


@pytest.mark.parametrize(
    ("step", "commits", "version"),
    [
        (7, [(70, 7), (60, 6)], 70),
        (6, [(70, 7), (60, 6)], 60),
        (6, [(70, 7), (50, 5)], 50),
        (7, [(71, None), (70, 7)], 71),  # what maintenance left behind is as good, and may be all there is
        (6, [(71, None), (70, 7), (61, None), (60, 6)], 61),
        (7, [(71, None)], 71),
        (6, [(71, None), (70, 7)], None),
        (6, [], None),
    ],
)
def test_the_version_of_a_step(step: int, commits: list[tuple[int, int | None]], version: int | None) -> None:
    assert version_at(step, commits) == version

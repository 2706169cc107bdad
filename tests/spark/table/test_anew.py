"""What is made anew: an index that changed."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headrace.spark.table.reading import as_of_one_step
from headrace.spark.table.tables.keyed import last_step
from tests.spark.table.conftest import ORDERS, TablesUnderTest, check_orders, order


def test_an_index_that_changed_is_made_anew_at_the_step_that_it_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    before = tables.config(ORDERS.format(topic="t"))
    tables.load(before, [(0, 0, b"a", order("ada", 1)), (0, 1, b"b", order("bob", 2))], 1)
    wanted = ORDERS.format(topic="t").replace('["customer"]', '["customer"]\ninclude = ["total"]')
    config = tables.config(wanted)
    opened = tables.opened(config)
    opened.derive(["orders_by_customer"], 1)
    rows = tables.rows(config, "orders_by_customer")
    assert {row.key: (row.customer, row.total) for row in rows} == {"a": ("ada", 1), "b": ("bob", 2)}
    assert last_step(opened.open("orders_by_customer")) == 1

    tables.load(config, [(0, 2, b"a", order("cy", 4))], 2)
    frames = as_of_one_step(spark, config, "orders")
    found = {name: frame.collect() for name, frame in frames.items()}
    check_orders(found, {"a": ("cy", 4), "b": ("bob", 2)})
    assert {row.key: row.total for row in found["orders_by_customer"]} == {"a": 4, "b": 2}

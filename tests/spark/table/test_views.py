"""A view that cannot be computed from the values that there are stops neither its table nor the indexes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from headrace.spark.lake.files import LocalFiles
from headrace.spark.table.computing import NotComputed, computed
from headrace.spark.table.config import TableConfig
from headrace.spark.table.lineage import Lineage
from headrace.spark.table.plan import table_state
from headrace.spark.table.starting import Start, prepare
from headrace.spark.table.tables.keyed import last_step
from tests.spark.table.conftest import ORDERS, TablesUnderTest, check_orders, derived_names, order

_LARGEST = 2**63 - 1


def steps(tables: TablesUnderTest, config: TableConfig) -> list[int]:
    return [last_step(tables.opened(config).open(name)) for name in derived_names(config)]


def start(tables: TablesUnderTest, config: TableConfig) -> tuple[Start, Lineage]:
    """As `run` starts a table that has a checkpoint."""
    lineage = Lineage(LocalFiles(), table_state(config.store, config.tables[0]))
    lineage.files.replace(f"{lineage.checkpoint(0).directory}/offsets/0", "v1\n{}\n{}")
    return prepare(lineage, tables.opened(config), 0, None), lineage


def test_a_view_that_overflows_is_left_behind_until_it_can_be_computed(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(ORDERS.format(topic="t"))
    opened, loader = tables.opened(config), tables.loader(config)
    loader.load(tables.frame([(0, 0, b"a", order("ada", 1)), (0, 1, b"b", order("bob", 2))]), 1, opened)
    assert not caplog.records
    loader.load(tables.frame([(0, 2, b"b", order("cy", 2)), (0, 3, b"c", order("ada", _LARGEST))]), 2, opened)
    assert steps(tables, config) == [2, 2, 1]
    assert {row.key: row.total for row in tables.rows(config, "orders")} == {"a": 1, "b": 2, "c": _LARGEST}
    assert {row.customer: row.spent for row in tables.rows(config, "customers")} == {"ada": 1, "bob": 2}
    (record,) = caplog.records
    said = record.getMessage()
    assert said.startswith("orders: view customers cannot be computed")
    assert "ARITHMETIC_OVERFLOW" in said
    assert "try_sum instead of sum" in said

    started, lineage = start(tables, config)
    assert list(started.behind) == ["customers"]
    assert list(lineage.derived()) == ["orders_by_customer"]
    again = tables.loader(config)
    again.behind = started.behind
    # It touches neither bob, whom step 2 left, nor cy. Both are put right.
    again.load(tables.frame([(0, 4, b"c", order("ada", 5))]), 3, opened)
    assert steps(tables, config) == [3, 3, 3]
    model: dict[str, tuple[str | None, int]] = {"a": ("ada", 1), "b": ("cy", 2), "c": ("ada", 5)}
    check_orders({name: tables.rows(config, name) for name in derived_names(config)}, model)
    assert not again.behind


def test_a_store_that_cannot_be_read_says_nothing_of_values(spark: SparkSession, tmp_path: Path) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    view = tables.config(ORDERS.format(topic="t")).tables[0].views[0]
    spark.range(2).write.parquet(str(tmp_path / "rows"))
    rows = spark.read.parquet(str(tmp_path / "rows")).agg(sf.sum("id"))
    for file in (tmp_path / "rows").glob("*.parquet"):
        file.unlink()
    with pytest.raises(Exception, match="FAILED_READ_FILE") as caught, computed(rows, view):
        pass
    assert not isinstance(caught.value, NotComputed)

"""A checkpoint is lost, a table is lost, and a key becomes another: the log is the truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.job import LoadFailed
from headrace.spark.table.config import TableConfig
from headrace.spark.table.lineage import Lineage
from headrace.spark.table.plan import table_state
from headrace.spark.table.rebuild import rebuild
from tests.broker_process import BrokerProcess
from tests.spark.table.conftest import ORDERS, TablesUnderTest, check_orders, derived_names, order


def check(tables: TablesUnderTest, config: TableConfig, model: dict[str, tuple[str | None, int]]) -> None:
    check_orders({name: tables.rows(config, name) for name in derived_names(config)}, model)


def test_a_lost_checkpoint_a_lost_table_and_another_key(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = new_topic()
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(ORDERS.format(topic=topic), headrace.bootstrap)
    tables.produce(headrace.bootstrap, topic, [(b"a", order("ada", 1)), (b"b", order("bob", 2))])
    tables.run(config)
    tables.produce(headrace.bootstrap, topic, [(b"b", None), (b"a", order("cy", 4)), (b"bad", b"{")])
    files = LocalFiles()
    state = table_state(config.store, config.tables[0])
    files.remove(Lineage(files, state).checkpoint(0).directory)
    tables.run(config)
    check(tables, config, {"a": ("cy", 4)})

    files.remove(f"{config.store.location}/orders")
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # another process would not remember it
    tables.run(config)
    check(tables, config, {"a": ("cy", 4)})

    other = tables.config(ORDERS.format(topic=topic).replace('"string"', '"bytes"'), headrace.bootstrap)
    with pytest.raises(LoadFailed, match="headrace table rebuild orders"):
        tables.run(other)
    rebuild(spark, other, "orders")
    assert [bytes(row.key) for row in tables.rows(other, "orders")] == [b"a"]

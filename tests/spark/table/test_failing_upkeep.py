"""Maintenance that fails is told of, and fails no batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.spark.lake.config import Maintenance
from headrace.spark.lake.files import LocalFiles
from headrace.spark.table.plan import table_state
from headrace.spark.table.upkeep import Upkeep
from tests.spark.table.conftest import PLAIN, TablesUnderTest, order


def test_a_table_that_cannot_be_maintained(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(PLAIN.format(topic="t"))
    for step in (1, 2):
        tables.load(config, [(0, step, f"k{step}".encode(), order("ada", step))], step)
    for file in (tmp_path / "tables" / "orders").glob("*.parquet"):
        file.unlink()  # there is nothing left that could be put together
    files = LocalFiles()
    upkeep, opened = Upkeep(Maintenance(every_seconds=60, least_files=2), files), tables.opened(config)
    upkeep.look(opened, now=1_000.0)
    assert not caplog.records
    assert upkeep.look(opened, now=1_060.0)
    (record,) = caplog.records
    assert record.getMessage().startswith("maintenance of orders failed: ")
    assert not upkeep.look(opened, now=1_061.0)  # not with every batch
    noted = files.read(f"{table_state(config.store, config.tables[0])}/maintenance.json")
    assert noted is not None
    assert json.loads(noted) == {"ended": 1_060.0}

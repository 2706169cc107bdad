"""Maintenance between two batches changes no row and forgets no step. If it fails, no batch does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.spark.lake.config import Maintenance
from headrace.spark.lake.files import LocalFiles
from headrace.spark.table.config import TableConfig
from headrace.spark.table.plan import table_state
from headrace.spark.table.reading import as_of_one_step
from headrace.spark.table.tables.keyed import last_step
from headrace.spark.table.upkeep import Upkeep
from tests.spark.table.conftest import PLAIN, TablesUnderTest, order


def two_steps(tables: TablesUnderTest) -> TableConfig:
    config = tables.config(PLAIN.format(topic="t"))
    for step in (1, 2):
        tables.load(config, [(0, step, f"k{step}".encode(), order("ada", step))], step)
    return config


def test_a_table_of_iceberg_knows_its_step_after_all_snapshots_expired(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = TablesUnderTest(spark, tmp_path, "iceberg")
    config = two_steps(tables)
    settings = Maintenance(every_seconds=60, least_files=2, keep_seconds=0)
    upkeep, opened = Upkeep(settings, LocalFiles()), tables.opened(config)
    assert not Upkeep(None, LocalFiles()).look(opened)
    assert not upkeep.look(opened, now=1_000.0)  # from here it counts
    assert not upkeep.look(opened, now=1_059.0)
    assert upkeep.look(opened, now=1_060.0)
    assert not caplog.records
    assert last_step(opened.main) == 2
    (frame,) = as_of_one_step(spark, config, "orders").values()
    assert {row.key: row.total for row in frame.collect()} == {"k1": 1, "k2": 2}
    # A repetition, which nothing but the step tells from a new batch.
    tables.load(config, [(0, 3, b"k1", None)], 2)
    assert sorted(row.key for row in tables.rows(config, "orders")) == ["k1", "k2"]


def test_a_table_that_cannot_be_maintained(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = two_steps(tables)
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

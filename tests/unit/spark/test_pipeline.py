"""The short names take a file or what was made of it, and hand it to the jobs as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.spark import read_tables, rebuild_table, run_lake, run_tables
from headrace.spark.lake import config as lake_config
from headrace.spark.lake import job as lake_job
from headrace.spark.table import config as table_config
from headrace.spark.table import job as table_job
from headrace.spark.table import reading, rebuild

SPARK: Any = object()
LAKE = """
[kafka]
"bootstrap.servers" = "127.0.0.1:9092"
[lake]
location = "lake"
[[topics]]
name = "orders"
"""
TABLES = """
[kafka]
"bootstrap.servers" = "127.0.0.1:9092"
[store]
location = "tables"
[[tables]]
topic = "orders"
format = "json"
schema = "id bigint"
"""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for module, name in [
        (lake_job, "run"),
        (table_job, "run"),
        (reading, "as_of_one_step"),
        (rebuild, "rebuild"),
    ]:
        monkeypatch.setattr(module, name, lambda *given, **named: found.append((*given, named)))
    return found


def test_a_lake_by_its_file_or_as_it_was_read(calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    file = tmp_path / "lake.toml"
    file.write_text(LAKE)
    read = lake_config.load(file)
    run_lake(SPARK, str(file), once=True)
    run_lake(SPARK, read)
    assert calls == [(SPARK, read, {"once": True}), (SPARK, read, {"once": False})]


def test_tables_by_their_file_or_as_it_was_read(calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    file = tmp_path / "table.toml"
    file.write_text(TABLES)
    read = table_config.load(file)
    run_tables(SPARK, file, once=True)
    read_tables(SPARK, str(file), "orders")
    rebuild_table(SPARK, read, "orders")
    assert calls == [
        (SPARK, read, {"once": True}),
        (SPARK, read, "orders", {}),
        (SPARK, read, "orders", {}),
    ]

"""What tables do without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from pyspark.sql import SparkSession

from headrace.spark.lake.config import parse
from headrace.spark.lake.tables.appends import Appends
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.turns import InTurn


def test_files_of_an_append_that_goes_on_are_never_old() -> None:
    now = 1000.0
    appends = Appends(lambda: now)
    assert appends.longest("t") == 0
    with appends.under_way("t"):
        now = 1200.0
        with appends.under_way("t"):
            now = 1500.0
            assert appends.longest("t") >= 500
            assert appends.longest("other") == 0
        assert appends.longest("t") >= 500
    assert appends.longest("t") == 0


def test_iceberg_without_a_location_waits_for_its_turn_as_well(tmp_path: Path) -> None:
    """Its catalog may have its tables in a local directory."""
    text = (
        f'[kafka]\n"bootstrap.servers" = "a:1"\n[lake]\nformat = "iceberg"\nstate = "{tmp_path}"\n'
        '[[topics]]\nname = "t"\n'
    )
    config = parse(text, tmp_path / "lake.toml")
    assert isinstance(open_table(cast(SparkSession, None), config, "t"), InTurn)

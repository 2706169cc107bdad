"""Where a configuration has its tables and its state."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession


def location_of(spark: SparkSession, table_format: str, directory: Path) -> str:
    """All tests of a process share a session, and Iceberg's catalog has one place for all its tables."""
    place = directory if table_format != "iceberg" else spark.conf.get("spark.sql.catalog.iceberg.warehouse")
    return f"file://{place}"


def places(spark: SparkSession, table_format: str, directory: Path) -> str:
    """Lines of TOML."""
    return f'location = "{location_of(spark, table_format, directory)}"\nstate = "file://{directory}/_headrace"\n'

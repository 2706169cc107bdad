"""The tables of a configuration, by their names."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import files_for
from headrace.spark.lake.tables.delta import DeltaTable
from headrace.spark.lake.tables.iceberg import IcebergTable
from headrace.spark.lake.tables.parquet import ParquetTable
from headrace.spark.lake.tables.table import Table


def open_table(spark: SparkSession, config: LakeConfig, name: str) -> Table:
    """The table need not exist yet."""
    if config.format == "iceberg":
        return IcebergTable(spark, config.catalog, config.namespace, name)
    assert config.location is not None, "the configuration was checked"
    path = f"{config.location}/{name}"
    if config.format == "delta":
        return DeltaTable(spark, path)
    return ParquetTable(spark, path, files_for(path, spark))

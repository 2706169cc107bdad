"""The tables of a configuration, by their names."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import files_for, is_local
from headrace.spark.lake.tables.delta import DeltaTable
from headrace.spark.lake.tables.iceberg import IcebergTable
from headrace.spark.lake.tables.parquet import ParquetTable
from headrace.spark.lake.tables.table import Table
from headrace.spark.lake.tables.turns import InTurn


def open_table(spark: SparkSession, config: LakeConfig, name: str) -> Table:
    """The table need not exist yet."""
    if config.format == "iceberg":
        table = IcebergTable(spark, config.catalog, config.namespace, name)
        return InTurn(table, config.state, name) if _is_local(config) else table
    assert config.location is not None, "the configuration was checked"
    path = f"{config.location}/{name}"
    if config.format == "delta":
        return (
            InTurn(DeltaTable(spark, path), config.state, name)
            if _is_local(config)
            else DeltaTable(spark, path)
        )
    return ParquetTable(spark, path, files_for(path, spark))


def _is_local(config: LakeConfig) -> bool:
    return config.location is not None and is_local(config.location)

"""The tables of a configuration, by their names."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.tables.opening import check_warehouse
from headrace.spark.table.tables.delta import KeyedDeltaTable
from headrace.spark.table.tables.iceberg import KeyedIcebergTable
from headrace.spark.table.tables.keyed import KeyedTable


def open_table(spark: SparkSession, store: LakeConfig, name: str) -> KeyedTable:
    """The table need not exist yet. One process at a time writes to it: whoever has the state's lock."""
    if store.format == "iceberg":
        check_warehouse(spark, store)
        return KeyedIcebergTable(spark, store.catalog, store.namespace, name)
    return KeyedDeltaTable(spark, f"{store.location}/{name}")

"""The tables of a configuration, by their names."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headrace.core.errors import HeadraceError
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import files_for, for_people, is_local
from headrace.spark.lake.tables.delta import DeltaTable
from headrace.spark.lake.tables.iceberg import IcebergTable
from headrace.spark.lake.tables.parquet import ParquetTable
from headrace.spark.lake.tables.table import Table
from headrace.spark.lake.tables.turns import InTurn


class TablesElsewhere(HeadraceError):
    """The session and the configuration mean different tables."""


def open_table(spark: SparkSession, config: LakeConfig, name: str) -> Table:
    """The table need not exist yet."""
    if config.format == "iceberg":
        check_warehouse(spark, config)
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


def check_warehouse(spark: SparkSession, config: LakeConfig) -> None:
    """A catalog of directories has one place for all its tables, which the session was given. With another
    than the configuration's, new empty tables would be made there, and the old ones get nothing any more.
    """
    catalog = f"spark.sql.catalog.{config.catalog}"
    if config.location is None or spark.conf.get(f"{catalog}.type", None) != "hadoop":
        return
    place = spark.conf.get(f"{catalog}.warehouse", None)
    if place is None or for_people(place) != for_people(config.location):
        raise TablesElsewhere(
            f"the configuration has Iceberg's tables in {for_people(config.location)}, and this session in "
            f"{place and for_people(place)}. Make the session with headrace.spark.lake.sessions.session_for, "
            f'or set "{catalog}.warehouse" before it starts'
        )


def _is_local(config: LakeConfig) -> bool:
    """Where Iceberg's tables are is not known without a location; to wait for one's turn does no harm."""
    return config.location is None or is_local(config.location)

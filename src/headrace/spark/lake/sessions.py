"""The Spark session of `headrace lake`: what lake.toml says under [spark], and where Iceberg's tables are."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from headrace.spark.lake.config import LakeConfig
from headrace.spark.sessions import ICEBERG_CATALOG, session


def session_for(
    config: LakeConfig, *, master: str | None = None, name: str = "headrace lake"
) -> SparkSession:
    """Whoever has a session already passes that one to `job.run` instead."""
    given = dict(config.spark)
    chosen = master or given.pop("master", None)
    jar_directory = given.pop("jars", None)
    warehouse = given.pop("warehouse", None)
    extra = {"spark.ui.showConsoleProgress": "false"}
    if (chosen or "local[*]").startswith("local"):
        # Spark's 200 tasks after each shuffle are for a cluster. A stream may not choose fewer by itself.
        extra["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 2))
    if config.format == "iceberg" and config.location is not None and config.catalog == ICEBERG_CATALOG:
        extra[f"spark.sql.catalog.{ICEBERG_CATALOG}.warehouse"] = config.location
    made = session(
        name,
        master=chosen,
        jar_directory=jar_directory,
        warehouse=warehouse or config.location,
        extra={**extra, **given},
    )
    made.sparkContext.setLogLevel(given.get("spark.log.level", "ERROR"))
    return made

"""A session as mirror.toml describes it."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.sessions import session


def session_for(config: MirrorConfig, *, master: str | None = None) -> SparkSession:
    """Whoever has a session already passes that one to `job.run` instead."""
    given = dict(config.spark)
    chosen = master or given.pop("master", None)
    extra = {"spark.ui.showConsoleProgress": "false"}
    if (chosen or "local[*]").startswith("local"):
        extra["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 2)
    made = session(
        f"headrace mirror {config.name}",
        master=chosen,
        jar_directory=given.pop("jars", None),
        extra={**extra, **given},
    )
    made.sparkContext.setLogLevel(given.get("spark.log.level", "ERROR"))
    return made

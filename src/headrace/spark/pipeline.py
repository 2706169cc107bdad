"""What `headrace lake` and `headrace table` do, for a program or a notebook that has a session.

    from headrace.spark import read_tables, run_lake, run_tables, session

    spark = session()
    run_lake(spark, "lake.toml", once=True)

Each takes the file, or what `config.load` has made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headrace.spark.lake import config as lake_config
from headrace.spark.lake import job as lake_job
from headrace.spark.lake.backfill import job as backfill_job
from headrace.spark.lake.backfill.job import Backfilled
from headrace.spark.lake.backfill.places import place_of
from headrace.spark.lake.batches import Done
from headrace.spark.lake.config import LakeConfig
from headrace.spark.table import config as table_config
from headrace.spark.table import job as table_job
from headrace.spark.table import reading, rebuild
from headrace.spark.table.config import TableConfig


def run_lake(spark: SparkSession, lake: LakeConfig | Path | str, *, once: bool = False) -> list[Done]:
    """Load topics into tables until the process ends, or with `once` what there is now. Raises LoadFailed
    where a topic could not be loaded."""
    return lake_job.run(spark, _lake(lake), once=once)


def backfill_lake(
    spark: SparkSession,
    lake: LakeConfig | Path | str,
    topic: str,
    *,
    files: Sequence[str | Path] = (),
    tier: str | None = None,
    cluster_id: str | None = None,
    topic_id: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
) -> Backfilled:
    """Load a topic's history into its table past the brokers, before the first `run_lake`, which goes on
    where it ended. `files`: log directories of brokers; `tier`: a bucket (`s3://BUCKET/PREFIX`), with
    `endpoint` and `region` as for `headrace tier check`. Brokers are asked for the ids that are not given."""
    config = _lake(lake)
    place = place_of(
        config,
        topic,
        files=files,
        tier=tier,
        cluster_id=cluster_id,
        topic_id=topic_id,
        endpoint=endpoint,
        region=region,
    )
    return backfill_job.run(spark, config, topic, place)


def run_tables(spark: SparkSession, tables: TableConfig | Path | str, *, once: bool = False) -> list[Done]:
    """Keep tables up until the process ends, or with `once` bring them to where the topics end now."""
    return table_job.run(spark, _tables(tables), once=once)


def read_tables(spark: SparkSession, tables: TableConfig | Path | str, name: str) -> dict[str, DataFrame]:
    """The table and what is derived from it, by name, all as of the same step."""
    return reading.as_of_one_step(spark, _tables(tables), name)


def rebuild_table(spark: SparkSession, tables: TableConfig | Path | str, name: str) -> rebuild.Rebuilt:
    """Make the table anew from what the log still has. Readers need not stop; a run must have ended."""
    return rebuild.rebuild(spark, _tables(tables), name)


def _lake(given: LakeConfig | Path | str) -> LakeConfig:
    return given if isinstance(given, LakeConfig) else lake_config.load(Path(given))


def _tables(given: TableConfig | Path | str) -> TableConfig:
    return given if isinstance(given, TableConfig) else table_config.load(Path(given))

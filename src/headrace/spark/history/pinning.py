"""What a streaming query will read, settled and kept beside its checkpoint; and the frames of its pieces."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headrace.arrow.columns import Bounds
from headrace.spark.history.frames import loaded_ranges
from headrace.spark.history.parts import Parts, look, place_of
from headrace.spark.history.pinned import Ahead, Pinned, ahead, pinned_of
from headrace.spark.history.plan import HistoryRefused, Range, share
from headrace.spark.lake import dead_letters, locks
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import files_for
from headrace.spark.lake.tables.matching import within
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.table import Table
from headrace.spark.segments import job
from headrace.spark.segments.datasource import FORMAT
from headrace.spark.segments.errors import told
from headrace.spark.segments.plan import Span, Task, tasks, tasks_json

_V1: Final = "spark.sql.sources.useV1SourceList"


def pinned(spark: SparkSession, parts: Parts, checkpoint: str) -> Pinned:
    """Of two that begin at the same time, the one that writes first decides."""
    files, path = files_for(checkpoint, spark), f"{checkpoint}/history.json"
    text = files.read(path)
    if text is None:
        made = _made(spark, parts)
        text = made.text() if files.create(path, made.text()) else files.read(path)
        assert text is not None, "somebody has just written it"
    found = pinned_of(text)
    if found.topic != parts.topic:
        raise HistoryRefused(
            f"the checkpoint {checkpoint} is of topic {found.topic}, not of {parts.topic}: take another one"
        )
    return found


def _made(spark: SparkSession, parts: Parts) -> Pinned:
    # Maintenance and replays move rows between files; a load only adds some.
    held = nullcontext() if parts.config is None else locks.held(parts.config.state, "maintain", spark)
    with held:
        view, bucket = look(spark, parts)
        found = ahead(share(parts.topic, view))
        table, letters, schema = (
            ((), (), None) if parts.config is None else _files(spark, parts, parts.config, found)
        )
    return Pinned(
        parts.topic, found.starts, found.table, table, letters, schema, _tasks(parts, bucket, found)
    )


def _files(
    spark: SparkSession, parts: Parts, config: LakeConfig, found: Ahead
) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
    table, dead = (open_table(spark, config, name) for name in (parts.route.table, parts.route.dead_letters))
    schema = table.schema()
    if schema is None:
        return (), (), None
    if not found.table:
        return (), (), schema.json()
    if dead.schema() is not None:
        letters = dead.read().filter(within(loaded_ranges(parts.topic, found.table)))
        if not dead_letters.delivered(table, letters).isEmpty():
            raise HistoryRefused(
                f"a replay of {dead.name} was cut off: run `headrace lake replay` once more, and begin again"
            )
    return data_files(spark, config, table), data_files(spark, config, dead), schema.json()


def data_files(spark: SparkSession, config: LakeConfig, table: Table) -> tuple[str, ...]:
    """Of a table as it is now, by their names: those of a writer are in the order of its batches."""
    if table.schema() is None:
        return ()
    frame = table.read()
    if config.format != "iceberg":
        return tuple(sorted(frame.inputFiles()))
    listed = spark.table(f"{_iceberg_name(table)}.files")
    if not listed.where("content <> 0").isEmpty():
        raise HistoryRefused(f"{table.name} has files of deletions: rewrite its data files first")
    return tuple(sorted(row.file_path for row in listed.select("file_path").collect()))


def _iceberg_name(table: Table) -> str:
    return ".".join(f"`{part}`" for part in table.name.split(".", 2))


def _tasks(parts: Parts, bucket: Mapping[str, str], found: Ahead) -> tuple[Task, ...]:
    if not bucket or not found.tier:
        return ()
    spans: list[Span] = []
    with told(), place_of(bucket).opened(patient=False) as opened:
        for partition, ranges in found.tier.items():
            for each in ranges:
                spans += job.list_spans(opened, parts.topic, (partition,), partial(_bounds, each))
    return tuple(tasks(spans))


def _bounds(span: Range, _partition: int) -> Bounds:
    return Bounds(span.first, span.end)


def table_frame(spark: SparkSession, schema: StructType, files: tuple[str, ...]) -> DataFrame:
    """Of files as they are, whoever's table they belong to. Only Spark's newer reader lets others plan."""
    before = spark.conf.get(_V1)
    others = [name for name in (before or "").split(",") if name != "parquet"]
    spark.conf.set(_V1, ",".join(others))
    try:
        frame = spark.read.schema(schema).parquet(*files)
        frame._jdf.queryExecution().optimizedPlan()
    finally:
        spark.conf.set(_V1, before or "")
    return frame


def bucket_frame(spark: SparkSession, bucket: Mapping[str, str], planned: tuple[Task, ...]) -> DataFrame:
    return spark.read.format(FORMAT).options(**bucket, tasks=tasks_json(planned)).load()

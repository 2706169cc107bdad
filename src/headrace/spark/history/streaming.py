"""A whole topic as a stream: up to four sources of one query, with one checkpoint.

The table's files, its dead letters and the bucket's segments are lists that do not change, and the brokers'
part begins where they end. What comes first in the union is asked first for its next batch, so that whoever
waits for another one knows in the same moment that this is through.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from headrace.spark.history import frames, pinning
from headrace.spark.history.frames import Shape
from headrace.spark.history.listed_stream import Pieces, streamed
from headrace.spark.history.live import LiveStream
from headrace.spark.history.parts import Parts, bucket_of
from headrace.spark.history.pinned import Pinned
from headrace.spark.jvm import require_classic, require_kafka
from headrace.spark.lake import shaping
from headrace.spark.lake.checkpoint import offsets_json
from headrace.spark.lake.tables.matching import within
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.segments.datasource import register, schema_of
from headrace.spark.segments.options import COLUMNS
from headrace.spark.source.connector import controlled


class _Listed(NamedTuple):
    frame: DataFrame
    pieces: Pieces


def stream(spark: SparkSession, parts: Parts, checkpoint: str, *, in_order: bool) -> tuple[DataFrame, Shape]:
    require_classic(spark, "stream_whole_topic")
    require_kafka(spark, "stream_whole_topic")
    register(spark)
    pinned = pinning.pinned(spark, parts, checkpoint)
    loaded = _loaded(spark, parts, pinned, checkpoint)
    before = [each.pieces for each in loaded] if in_order else []
    bucket = _bucket(spark, parts, pinned, checkpoint, before)
    before += [each.pieces for each in bucket] if in_order else []
    records = frames.united(
        [*(each.frame for each in bucket), _live(spark, parts, pinned, checkpoint, before)]
    )
    known = None if pinned.schema is None else StructType.fromJson(json.loads(pinned.schema))
    scale_may_grow = frames.table_schema(spark, parts)[1]
    rest, shape = frames.shape_as_loaded(records, parts.route, known, scale_may_grow)
    problems = (sf.lit(None).cast("string"), sf.col(shaping.REASON))
    within_bounds = within(frames.loaded_ranges(parts.topic, pinned.loaded)) or "false"
    history = [
        frames.as_loaded(each.frame.filter(within_bounds), shape, problem)
        for each, problem in zip(loaded, problems, strict=False)
    ]
    return frames.united([*history, rest]), shape


def _loaded(spark: SparkSession, parts: Parts, pinned: Pinned, checkpoint: str) -> list[_Listed]:
    """The table, and its dead letters. Both always, where there is a lake: a query keeps its sources."""
    if parts.config is None or pinned.schema is None:
        return []
    table = StructType.fromJson(json.loads(pinned.schema))
    dead = open_table(spark, parts.config, parts.route.dead_letters).schema()
    letters = dead or shaping.dead_letter_schema(spark.createDataFrame([], schema_of(COLUMNS)))
    found: list[_Listed] = []
    for name, schema, files in (("table", table, pinned.files), ("letters", letters, pinned.letters)):

        def frame(
            first: int, end: int, schema: StructType = schema, files: tuple[str, ...] = files
        ) -> DataFrame:
            return pinning.table_frame(spark, schema, files[first:end])

        pieces = Pieces(f"headrace {name} of {parts.topic}", len(files), frame)
        found.append(_Listed(streamed(spark, schema, pieces, checkpoint), pieces))
    return found


def _bucket(
    spark: SparkSession, parts: Parts, pinned: Pinned, checkpoint: str, before: list[Pieces]
) -> list[_Listed]:
    if not parts.tier:
        return []
    options: Mapping[str, str] = bucket_of(parts)
    waited_for = tuple(before)

    def frame(first: int, end: int) -> DataFrame:
        return pinning.bucket_frame(spark, options, pinned.tasks[first:end])

    schema = spark.createDataFrame([], schema_of(COLUMNS)).schema
    pieces = Pieces(
        f"headrace segments of {parts.topic}",
        len(pinned.tasks),
        frame,
        lambda: all(each.is_through for each in waited_for),
    )
    return [_Listed(streamed(spark, schema, pieces, checkpoint), pieces)]


def _live(
    spark: SparkSession, parts: Parts, pinned: Pinned, checkpoint: str, before: list[Pieces]
) -> DataFrame:
    starts = offsets_json({(parts.topic, partition): at for partition, at in pinned.starts.items()})
    options = parts.wish.connector()
    bare = spark.readStream.format("kafka").options(**options, startingOffsets=starts).load()
    waited_for = tuple(before)

    def control(inner: object, where: str) -> LiveStream:
        return LiveStream(
            spark,
            parts.wish,
            inner,
            where,
            starts=pinned.starts,
            checkpoint=checkpoint,
            may_begin=lambda: all(each.is_through for each in waited_for),
        )

    return controlled(spark, bare, control)

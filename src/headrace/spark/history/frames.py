"""The parts of a topic as frames with the same columns: as the lake would load them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from headrace.spark import columns
from headrace.spark.decoding.columns import PROBLEM
from headrace.spark.decoding.shaping import shaped as in_shape_of
from headrace.spark.history.parts import Parts
from headrace.spark.history.plan import LOG, TABLE, TIER, Range, Whole
from headrace.spark.lake import dead_letters, shaping
from headrace.spark.lake.checkpoint import Range as LoadedRange
from headrace.spark.lake.checkpoint import offsets_json
from headrace.spark.lake.plan import Route
from headrace.spark.lake.table_schema import Following, follow, quoted
from headrace.spark.lake.tables.matching import within
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.segments.datasource import FORMAT, register, schema_of
from headrace.spark.segments.options import COLUMNS


def records(spark: SparkSession, parts: Parts, whole: Whole, bucket: Mapping[str, str]) -> DataFrame:
    """What is not in the table, as the connector gives it."""
    frames = [_from_brokers(spark, parts, whole, each) for each in _layers(whole.of(LOG))]
    if bucket:
        register(spark)
        frames += [_from_bucket(spark, parts, bucket, each) for each in _layers(whole.of(TIER))]
    return united(frames) if frames else spark.createDataFrame([], schema_of(COLUMNS))


def _layers(ranges: Mapping[int, list[Range]]) -> list[dict[int, Range]]:
    """One range of a partition each: a reader takes no more."""
    depth = max(map(len, ranges.values()), default=0)
    return [
        {partition: found[number] for partition, found in ranges.items() if number < len(found)}
        for number in range(depth)
    ]


def _from_brokers(spark: SparkSession, parts: Parts, whole: Whole, ranges: Mapping[int, Range]) -> DataFrame:
    spans = {partition: ranges.get(partition, Range(end, end)) for partition, end in whole.ends.items()}
    options = parts.wish.connector() | {
        "startingOffsets": offsets_json({(parts.topic, each): span.first for each, span in spans.items()}),
        "endingOffsets": offsets_json({(parts.topic, each): span.end for each, span in spans.items()}),
    }
    return spark.read.format("kafka").options(**options).load()


def _from_bucket(
    spark: SparkSession, parts: Parts, bucket: Mapping[str, str], ranges: Mapping[int, Range]
) -> DataFrame:
    isolation = "read_committed" if parts.wish.committed_only else "read_uncommitted"
    options = {
        **bucket,
        "isolation": isolation,
        "partitions": ",".join(map(str, ranges)),
        "startingOffsets": offsets_json({(parts.topic, each): span.first for each, span in ranges.items()}),
        "endingOffsets": offsets_json({(parts.topic, each): span.end for each, span in ranges.items()}),
    }
    return spark.read.format(FORMAT).options(**options).load()


class Shape(NamedTuple):
    """The columns that the table would have with these records in it, and one for what cannot be decoded."""

    following: Following
    problem: str | None

    @property
    def names(self) -> list[str]:
        own = [name for name in self.following.schema.names if name not in columns.RECORD_COLUMNS]
        return [*columns.RECORD_COLUMNS, *own, *([] if self.problem is None else [self.problem])]


def table_schema(spark: SparkSession, parts: Parts) -> tuple[StructType | None, bool]:
    """None without a table; and whether its decimals may get more digits after the point."""
    if parts.config is None:
        return None, True
    table = open_table(spark, parts.config, parts.route.table)
    return table.schema(), table.scale_may_grow


def shape_as_loaded(
    frame: DataFrame, route: Route, known: StructType | None, scale_may_grow: bool
) -> tuple[DataFrame, Shape]:
    """Records as the lake would load them into a table that is known so; the table is not changed."""
    shaped = shaping.shape(frame, route)
    if known is None:
        following = Following(shaped.incoming, (), ())
    else:
        following = follow(known, shaped.incoming, scale_may_grow=scale_may_grow)
    chosen = shaping.table_columns(shaped, following)
    if shaped.typed is None:
        return _tidy(frame.select(*chosen), Shape(following, None))
    shape = Shape(following, f"headrace_{PROBLEM}" if PROBLEM in following.schema.names else PROBLEM)
    judged = shaping.judge(shaped, following)
    return _tidy(judged.select(*chosen, sf.col(PROBLEM).alias(shape.problem or PROBLEM)), shape)


def _tidy(frame: DataFrame, shape: Shape) -> tuple[DataFrame, Shape]:
    return in_order(frame, shape), shape


def in_order(frame: DataFrame, shape: Shape) -> DataFrame:
    """A record without headers has an empty list of them: the connector and older rows have null."""
    none = sf.array().cast(frame.schema[columns.HEADERS].dataType)
    filled = frame.withColumn(columns.HEADERS, sf.coalesce(sf.col(columns.HEADERS), none))
    return filled.select(*(sf.col(quoted(name)) for name in shape.names))


def loaded(spark: SparkSession, parts: Parts, whole: Whole, shape: Shape) -> list[DataFrame]:
    """What the table has, and its dead letters with their problems."""
    found = whole.of(TABLE)
    if parts.config is None or not found:
        return []
    ranges = loaded_ranges(parts.topic, found)
    table = open_table(spark, parts.config, parts.route.table)
    rows = as_loaded(table.read().filter(within(ranges)), shape, sf.lit(None).cast("string"))
    dead = open_table(spark, parts.config, parts.route.dead_letters)
    if dead.schema() is None:
        return [rows]
    letters = dead.read().filter(within(ranges))
    # A replay first delivers letters, and then removes them.
    delivered = dead_letters.delivered(table, letters)
    letters = letters.join(sf.broadcast(delivered), list(columns.IDENTITY), "left_anti")
    return [rows, as_loaded(letters, shape, sf.col(shaping.REASON))]


def loaded_ranges(topic: str, found: Mapping[int, Sequence[Range]]) -> list[LoadedRange]:
    return [
        LoadedRange(topic, partition, each.first, each.end)
        for partition, several in found.items()
        for each in several
    ]


def as_loaded(frame: DataFrame, shape: Shape, problem: Column) -> DataFrame:
    types = {field.name: field.dataType for field in frame.schema.fields}
    chosen = [
        (
            in_shape_of(sf.col(quoted(field.name)), types[field.name], field.dataType)
            if field.name in types
            else sf.lit(None).cast(field.dataType)
        ).alias(field.name)
        for field in shape.following.schema.fields
    ]
    if shape.problem is not None:
        chosen.append(problem.alias(shape.problem))
    return in_order(frame.select(*chosen), shape)


def united(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)

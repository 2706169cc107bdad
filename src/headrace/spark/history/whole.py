"""A topic as one frame, wherever its records are: in the lake's table, in a bucket, with the brokers.

from headrace.spark import whole_topic

orders = whole_topic(spark, "orders", lake="lake.toml", tier="s3://history/kafka")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from headrace.spark.decoding.formats import Decoding, decoding_of
from headrace.spark.history import frames, streaming
from headrace.spark.history.frames import Shape
from headrace.spark.history.parts import Parts, look, parts_of
from headrace.spark.history.plan import HistoryRefused, share
from headrace.spark.lake import config as lake_config
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import is_local
from headrace.spark.source.options import properties

#: What becomes of a record that cannot be decoded: a row with its `problem`, or no row.
Undecodable = Literal["keep", "drop"]


def whole_topic(
    spark: SparkSession,
    topic: str,
    *,
    kafka: Mapping[str, str] | str | None = None,
    lake: LakeConfig | Path | str | None = None,
    tier: str | None = None,
    cluster_id: str | None = None,
    topic_id: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
    decoding: Decoding | str | None = None,
    undecodable: Undecodable = "keep",
    keep_value: bool = False,
) -> DataFrame:
    """Every record of a topic once, up to where it ends now: what `lake` has loaded comes from its table,
    what follows from the bucket (`tier`, as for `read_segments`) as far as that goes, and then from the
    brokers (`kafka`; by default those of the lake).

    Columns are those of the lake's table, or without one those of `read_topic`. Where values are decoded
    there is a `problem` as well: dead letters of the lake are rows with theirs.
    """
    parts = _parts(
        topic, kafka, lake, (tier, cluster_id, topic_id, endpoint, region), decoding, undecodable, keep_value
    )
    view, bucket = look(spark, parts)
    whole = share(topic, view)
    known = frames.table_schema(spark, parts)
    rest, shape = frames.shape_as_loaded(frames.records(spark, parts, whole, bucket), parts.route, *known)
    return _judged(frames.united([*frames.loaded(spark, parts, whole, shape), rest]), shape, undecodable)


def stream_whole_topic(
    spark: SparkSession,
    topic: str,
    *,
    checkpoint: Path | str,
    kafka: Mapping[str, str] | str | None = None,
    lake: LakeConfig | Path | str | None = None,
    tier: str | None = None,
    cluster_id: str | None = None,
    topic_id: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
    decoding: Decoding | str | None = None,
    undecodable: Undecodable = "keep",
    keep_value: bool = False,
    in_order: bool = True,
    max_records: int | None = None,
) -> DataFrame:
    """The same as a streaming frame, which goes on with what comes. Start its query with this `checkpoint` as
    its checkpointLocation: what is read before the brokers is settled when the frame is first made, and kept
    there.

    With `in_order`, the bucket's part begins when the table's is through, and the brokers' when both are.
    """
    parts = _parts(
        topic, kafka, lake, (tier, cluster_id, topic_id, endpoint, region), decoding, undecodable, keep_value
    )
    parts = parts._replace(wish=replace(parts.wish, max_records=max_records))
    place = str(checkpoint)
    if is_local(place) and "://" not in place and not place.startswith("file:"):
        place = str(Path(place).absolute())
    found, shape = streaming.stream(spark, parts, place, in_order=in_order)
    return _judged(found, shape, undecodable)


def _parts(
    topic: str,
    kafka: Mapping[str, str] | str | None,
    lake: LakeConfig | Path | str | None,
    tier: tuple[str | None, ...],
    decoding: Decoding | str | None,
    undecodable: str,
    keep_value: bool,
) -> Parts:
    if undecodable not in get_args(Undecodable):
        raise HistoryRefused(f"undecodable is {' or '.join(get_args(Undecodable))}, not {undecodable!r}")
    return parts_of(
        topic,
        None if kafka is None else properties(kafka),
        lake if lake is None or isinstance(lake, LakeConfig) else lake_config.load(Path(lake)),
        dict(zip(("tier", "cluster.id", "topic.id", "endpoint", "region"), tier, strict=True)),
        decoding_of(decoding),
        keep_value=keep_value,
    )


def _judged(frame: DataFrame, shape: Shape, undecodable: Undecodable) -> DataFrame:
    if undecodable == "keep" or shape.problem is None:
        return frame
    return frame.filter(sf.col(shape.problem).isNull()).drop(shape.problem)

"""Topics as frames with typed columns.

from headrace.spark import read_topic, stream_topic

orders = stream_topic(spark, "orders", kafka="localhost:9092", group="billing")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing

from pyspark.sql import DataFrame, SparkSession

from headrace.spark.decoding.formats import Decoding, decoding_of
from headrace.spark.jvm import require_classic, require_kafka
from headrace.spark.reachable import require_reachable
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.connector import controlled
from headrace.spark.source.options import (
    End,
    OnLoss,
    Start,
    Undecodable,
    Wish,
    check_undecodable,
    names,
    properties,
)
from headrace.spark.source.positions import first_start, whole
from headrace.spark.source.shaping import shape
from headrace.spark.source.stream import TopicStream


def stream_topic(
    spark: SparkSession,
    topic: str | Sequence[str],
    *,
    kafka: Mapping[str, str] | str,
    decoding: Decoding | str | None = None,
    undecodable: Undecodable = "keep",
    keep_value: bool = False,
    group: str | None = None,
    start: Start = "earliest",
    on_loss: OnLoss = "fail",
    max_records: int | None = None,
    max_bytes: int | None = None,
    min_partitions: int | None = None,
) -> DataFrame:
    """A streaming frame: topic, partition, offset, timestamp, key, headers; then the value's fields and
    `problem`, or without `decoding` the `value`.

    Offsets are committed to `group` after each batch. `start` counts until the query has a checkpoint.
    `max_records` and `max_bytes` limit a batch; bytes are estimated by samples. `kafka` is where the brokers
    are, or all properties of a client. `decoding` may be the columns of JSON: "id bigint, name string".
    """
    check_undecodable(undecodable)
    decoding = decoding_of(decoding)
    wish = Wish(names(topic), properties(kafka), group, on_loss, max_records, max_bytes, min_partitions)
    with _brokers(spark, wish) as brokers:
        begin = first_start(brokers, wish, start)
    bare = spark.readStream.format("kafka").options(**wish.connector(), **begin).load()
    frame = controlled(spark, bare, lambda inner, where: TopicStream(spark, wish, inner, where))
    return shape(frame, decoding, undecodable=undecodable, keep_value=keep_value)


def read_topic(
    spark: SparkSession,
    topic: str | Sequence[str],
    *,
    kafka: Mapping[str, str] | str,
    decoding: Decoding | str | None = None,
    undecodable: Undecodable = "keep",
    keep_value: bool = False,
    group: str | None = None,
    start: Start = "earliest",
    end: End = "latest",
    on_loss: OnLoss = "fail",
    min_partitions: int | None = None,
) -> DataFrame:
    """A frame of what lies between `start` and `end`, which are looked up now: however often the frame is
    used, it has the same records. Columns and arguments are those of `stream_topic`.
    """
    check_undecodable(undecodable)
    decoding = decoding_of(decoding)
    wish = Wish(names(topic), properties(kafka), group, on_loss, min_partitions=min_partitions)
    with _brokers(spark, wish) as brokers:
        ends = whole(brokers, wish, start, end)
    frame = spark.read.format("kafka").options(**wish.connector(), **ends).load()
    return shape(frame, decoding, undecodable=undecodable, keep_value=keep_value)


def _brokers(spark: SparkSession, wish: Wish) -> AbstractContextManager[Brokers]:
    require_classic(spark, "the source")
    require_kafka(spark, "the source")
    require_reachable(wish.kafka["bootstrap.servers"])
    return closing(Brokers(spark, wish))

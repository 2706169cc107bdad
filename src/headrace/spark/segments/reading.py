"""Sealed segments of a topic as a frame.

from headrace.spark import read_segments

orders = read_segments(spark, "orders", tier="s3://history/kafka", kafka="localhost:9092")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headrace.spark import columns
from headrace.spark.decoding.formats import Decoding, decoding_of
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.checkpoint import offsets_json
from headrace.spark.segments import job
from headrace.spark.segments.datasource import FORMAT, register
from headrace.spark.segments.errors import SegmentsRefused, told
from headrace.spark.segments.options import Options, parse_options
from headrace.spark.segments.place import Bucket
from headrace.spark.segments.plan import TASK_BYTES, Span
from headrace.spark.source.options import Undecodable, check_undecodable, properties
from headrace.spark.source.shaping import shape

#: Offsets by topic and partition. Partitions that are not named are read from their beginning, to their end.
Given = Mapping[str, Mapping[int, int]]


def read_segments(
    spark: SparkSession,
    topic: str,
    *,
    tier: str | None = None,
    files: str | Path | Iterable[str | Path] | None = None,
    kafka: Mapping[str, str] | str | None = None,
    cluster_id: str | None = None,
    topic_id: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
    decoding: Decoding | str | None = None,
    undecodable: Undecodable = "keep",
    keep_value: bool = False,
    start: Given | None = None,
    end: Given | None = None,
    partitions: Sequence[int] | None = None,
    isolation: str = "read_committed",
    task_bytes: int = TASK_BYTES,
) -> DataFrame:
    """A frame of what a topic has in sealed segments, read past the brokers: in a bucket (`tier`), or in log
    directories that every executor sees (`files`). Both ends are looked up now, so that the frame always has
    the same records. Columns are those of `read_topic`.

    A bucket knows a topic by `cluster_id` and `topic_id`; `kafka`, where the brokers are or properties of a
    client, is needed only to ask for them. `start` and `end` are {"orders": {0: 17}}; to leave out by time,
    filter by `timestamp`: segments without such records are not fetched. Only committed records come, unless
    `isolation` says otherwise.
    """
    check_undecodable(undecodable)
    wanted = decoding_of(decoding)
    paths = (files,) if isinstance(files, str | Path) else files
    given = {
        "topic": topic,
        "tier": tier,
        "files": None if paths is None else ",".join(map(str, paths)),
        "cluster.id": cluster_id,
        "topic.id": topic_id,
        "endpoint": endpoint,
        "region": region,
        "columns": ",".join((*columns.RECORD_COLUMNS, columns.VALUE)),
        "partitions": None if partitions is None else ",".join(map(str, partitions)),
        "startingOffsets": _offsets(start),
        "endingOffsets": _offsets(end),
        "isolation": isolation,
        "task.bytes": str(task_bytes),
    }
    options = {name: value for name, value in given.items() if value is not None}
    client = {} if kafka is None else KafkaProperties(properties(kafka)).options
    with told():
        parsed = parse_options({**options, **client})
        spans = _listed(parsed)
    register(spark)
    frame = spark.read.format(FORMAT).options(**{**options, **_settled(parsed, spans)}).load()
    return shape(frame, wanted, undecodable=undecodable, keep_value=keep_value)


def _offsets(given: Given | None) -> str | None:
    if given is None:
        return None
    return offsets_json(
        {(topic, int(at)): each for topic, all_of in given.items() for at, each in all_of.items()}
    )


def _listed(options: Options) -> list[Span]:
    with options.place.opened(patient=False) as opened:
        spans = job.list_spans(
            opened,
            options.topic,
            options.partitions,
            options.bounds_of,
            committed_only=options.committed_only,
        )
    found = {span.partition: span for span in spans}
    for partition, end in options.ends.items():
        if end > max(options.starts.get(partition, 0), 0) and (
            partition not in found or found[partition].next_offset < end
        ):
            there = found[partition].next_offset if partition in found else "nowhere"
            raise SegmentsRefused(
                f"the segments of {options.topic}, partition {partition} end at {there}, before the given "
                f"end {end}: what is younger is with the brokers"
            )
    return spans


def _settled(options: Options, spans: Sequence[Span]) -> dict[str, str]:
    """Both ends of each partition, and whose they are: what a plan finds later is left out."""
    found = {
        "partitions": ",".join(str(span.partition) for span in spans),
        "startingOffsets": offsets_json({(span.topic, span.partition): span.first_offset for span in spans}),
        "endingOffsets": offsets_json({(span.topic, span.partition): span.next_offset for span in spans}),
    }
    if isinstance(options.place, Bucket):
        found |= {"cluster.id": options.place.cluster_id, "topic.id": options.place.topic_id}
    return found

"""What there is of a topic just now: in the lake's table, in a bucket, with the brokers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple

from pyspark.sql import SparkSession

from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.history.plan import HistoryRefused, Range, View
from headrace.spark.jvm import require_classic, require_kafka
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake import identity
from headrace.spark.lake.checkpoint import Checkpoint
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import files_for
from headrace.spark.lake.plan import Route, route
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.reachable import require_reachable
from headrace.spark.segments.errors import told
from headrace.spark.segments.options import parse_options
from headrace.spark.segments.place import Place
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.options import Wish


class Parts(NamedTuple):
    """Where the parts of a topic are, and how its records are to be decoded."""

    wish: Wish
    route: Route
    config: LakeConfig | None = None
    tier: Mapping[str, str] = {}
    """Options of `headrace-segments` that say where the bucket is; empty without one."""

    @property
    def topic(self) -> str:
        return self.route.topic


def parts_of(
    topic: str,
    kafka: Mapping[str, str] | None,
    config: LakeConfig | None,
    tier: Mapping[str, str | None],
    decoding: Decoding | None,
    *,
    keep_value: bool,
) -> Parts:
    """Raises HistoryRefused for what does not go together."""
    found = _route(topic, config, decoding, keep_value=keep_value)
    if kafka is None:
        if config is None:
            raise HistoryRefused('say where the brokers are: kafka="host:9092"')
        kafka = config.kafka
    given = {name: value for name, value in tier.items() if value is not None}
    if given and "tier" not in given:
        raise HistoryRefused(f'{", ".join(given)}: of which bucket? Say tier="s3://BUCKET/PREFIX"')
    return Parts(Wish((topic,), kafka), found, config, given)


def _route(topic: str, config: LakeConfig | None, decoding: Decoding | None, *, keep_value: bool) -> Route:
    if config is None:
        return Route(topic, "", "", decoding or Decoding(Format.BYTES), keep_value, "")
    if decoding is not None or keep_value:
        raise HistoryRefused("the lake's configuration says how records are decoded: leave decoding out")
    found = route(config, topic)
    if found is None:
        raise HistoryRefused(
            f"topic {topic} is in no table of the lake: name it in the configuration, or leave lake out"
        )
    return found


def look(spark: SparkSession, parts: Parts) -> tuple[View, dict[str, str]]:
    """And the options of the bucket with the ids of cluster and topic.

    The lake is asked first and the brokers last: what moves from one to the next meanwhile is seen in the
    later one too.
    """
    require_classic(spark, "whole_topic")
    require_kafka(spark, "whole_topic")
    require_reachable(parts.wish.kafka["bootstrap.servers"])
    with closing(Brokers(spark, parts.wish)) as brokers:
        partitions = brokers.partitions()
        table = {} if parts.config is None else _loaded(spark, parts, parts.config, brokers)
        options = bucket_of(parts)
        tier = _tiered(parts.topic, options)
        first = brokers.offsets(partitions, "earliest")
        last = brokers.offsets(partitions, "latest")
    log = {partition: Range(first[topic, partition], last[topic, partition]) for topic, partition in first}
    return View(log, tier, table), options


def _loaded(spark: SparkSession, parts: Parts, config: LakeConfig, brokers: Brokers) -> dict[int, Range]:
    route, files = parts.route, files_for(config.state, spark)
    noted, now = identity.noted_id(files, route), brokers.topic_ids().get(route.topic)
    if None not in (noted, now) and noted != now:
        raise HistoryRefused(
            f"topic {route.topic} was deleted and made anew, and {route.table} has records of the old one: "
            "read_topic has the new one"
        )
    checkpoint = Checkpoint(files, route.checkpoint)
    if open_table(spark, config, route.table).schema() is None:
        return {}
    # A table that is loaded from the start has all that was before its first batch, by whatever means.
    began = checkpoint.first_offsets() if config.start == "latest" else {}
    return {
        partition: Range(began.get((topic, partition), 0), end)
        for (topic, partition), end in checkpoint.loaded().items()
    }


def bucket_of(parts: Parts) -> dict[str, str]:
    if not parts.tier:
        return {}
    client = KafkaProperties(parts.wish.kafka).options
    with told():
        place = parse_options({"topic": parts.topic, **parts.tier, **client}).place
    ids = {"cluster.id": place.cluster_id, "topic.id": place.topic_id}  # type: ignore[attr-defined]  # of a bucket
    return {"topic": parts.topic, **parts.tier, **ids}


def _tiered(topic: str, options: Mapping[str, str]) -> dict[int, Range]:
    if not options:
        return {}
    with told(), place_of(options).opened(patient=False) as opened:
        return {
            each.partition.partition: Range(each.start, each.end) for each in opened.histories(topic, None)
        }


def place_of(options: Mapping[str, str]) -> Place:
    return parse_options(options).place

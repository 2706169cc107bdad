"""A mirror as a tier of an audit: what its target holds of the audited records.

Each record lies there under another offset. The mirror's own translation says which offset stands for the one
up to which the log was audited, so both sides are counted up to the same record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from headrace.audit.tally import Cell, Tally
from headrace.client.offsets import list_offsets
from headrace.core.ids import TopicPartition
from headrace.spark.audit import expressions
from headrace.spark.audit.blocking import finish
from headrace.spark.audit.books import LAST_MS
from headrace.spark.audit.picture import LakeTier, Partition
from headrace.spark.mirror.clusters import cluster_of
from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.mirror.frames import records_of
from headrace.spark.mirror.loops import was_on
from headrace.spark.mirror.reading import Reading


class Spans(NamedTuple):
    """Of the target, by its own names: what to read."""

    begin: dict[Partition, int]
    end: dict[Partition, int]


def mirror_tier(
    spark: SparkSession,
    mirror: MirrorConfig,
    window_ms: int,
    windows: Collection[tuple[str, int]],
    positions: Mapping[Partition, int],
) -> LakeTier:
    """Counted up to `positions`, where the log tier stands."""
    reading = finish(Reading.of(mirror))
    told = {each: at for each, at in reading.position.offsets().items() if each in positions}
    if not windows or not told:
        return LakeTier({}, told)
    spans = finish(_spans(mirror, reading, positions, min(window for _, window in windows)))
    if not spans.begin:
        return LakeTier({}, told)
    names = {topic.target: name for name, topic in reading.position.topics.items()}
    rows = records_of(spark, mirror.target, spans.begin, spans.end)
    rows = rows.filter(was_on(reading.position.source, F.col("headers")))
    renamed = F.create_map(*(F.lit(part) for pair in names.items() for part in pair))[F.col("topic")]
    counted = expressions.tallies_of_records(rows.withColumn("topic", renamed), window_ms)
    wanted = spark.createDataFrame(sorted(windows), "topic string, window_ms bigint")
    cells = {
        Cell(row.topic, row.partition, row.window_ms): Tally.parse(row["count"], row.checksum)
        for row in counted.join(F.broadcast(wanted), ["topic", "window_ms"]).toLocalIterator()
    }
    return LakeTier(cells, told)


async def _spans(
    mirror: MirrorConfig, reading: Reading, positions: Mapping[Partition, int], first_ms: int
) -> Spans:
    """From the first record that is as young as the oldest window, to what stands for the log's position."""
    ends: dict[TopicPartition, int] = {}
    for (topic, partition), limit in positions.items():
        mirrored = reading.position.at(topic, partition)
        if mirrored is not None:
            end = reading.translate(topic, partition, min(limit, mirrored))
            assert end is not None, "an offset up to the position has a translation"
            ends[TopicPartition(reading.position.topics[topic].target, partition)] = end
    async with cluster_of(mirror.target, mirror.name) as cluster:
        # Kafka takes negative times for something else.
        found = await list_offsets(cluster, dict.fromkeys(ends, max(0, min(first_ms, LAST_MS))))
    begin = {each: at.offset for each, at in found.items() if 0 <= at.offset < ends[each]}
    return Spans(
        {(each.topic, each.partition): at for each, at in begin.items()},
        {(each.topic, each.partition): ends[each] for each in begin},
    )

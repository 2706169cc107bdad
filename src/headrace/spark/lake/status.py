"""How far the lake is: what checkpoints say is loaded, beside what the brokers have. Needs no Spark."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.errors import ClientFailure
from headrace.client.group_lag import log_ends
from headrace.core.ids import TopicPartition
from headrace.spark.lake import batches
from headrace.spark.lake.checkpoint import Checkpoint
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import Files
from headrace.spark.lake.plan import Route, missing, routes

_PATIENCE_SECONDS: Final = 3.0


@dataclass(frozen=True)
class PartitionStatus:
    partition: int
    loaded: int | None
    """The next offset to load. None before the first batch."""
    first: int
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - max(self.first, self.loaded or 0))


@dataclass(frozen=True)
class TopicStatus:
    topic: str
    table: str
    partitions: tuple[PartitionStatus, ...]
    batch: int | None
    rate: float | None
    """Records a second while batches ran."""
    last_commit_ms: int | None
    oldest_ms: int | None
    """When the oldest record that is not loaded was written."""
    error: str | None

    @property
    def loaded(self) -> int:
        return sum(max(0, (each.loaded or 0) - each.first) for each in self.partitions)

    @property
    def lag(self) -> int:
        return sum(each.lag for each in self.partitions)

    def lag_ms(self, now_ms: int) -> int | None:
        """0 where nothing is left; None where the age of what is left is not known."""
        if not self.lag:
            return 0
        return None if self.oldest_ms is None else max(0, now_ms - self.oldest_ms)


@dataclass(frozen=True)
class LakeStatus:
    topics: tuple[TopicStatus, ...]
    absent: tuple[str, ...]
    """Named in the configuration, and not there."""


async def partitions_of_topics(cluster: Cluster) -> dict[str, list[int]]:
    reply = await cluster.retried(lambda: cluster.metadata(None))
    return {
        topic.name: sorted(entry.partition_index for entry in topic.partitions)
        for topic in reply.topics
        if topic.name is not None and not topic.error_code
    }


async def look(cluster: Cluster, config: LakeConfig, files: Files) -> LakeStatus:
    there = await partitions_of_topics(cluster)
    wanted = routes(config, there)
    return LakeStatus(await of_routes(cluster, wanted, there, files), tuple(missing(config, there)))


async def of_routes(
    cluster: Cluster, wanted: Sequence[Route], there: Mapping[str, Sequence[int]], files: Files
) -> tuple[TopicStatus, ...]:
    """One for each route, in their order. `there` has the partitions of every topic."""
    topics = {route.topic for route in wanted}
    ends = await log_ends(
        cluster, [TopicPartition(topic, index) for topic in sorted(topics) for index in there[topic]]
    )
    found = []
    for route in wanted:
        loaded = Checkpoint(files, route.checkpoint).loaded()
        found.append(
            tuple(
                PartitionStatus(
                    index, loaded.get((route.topic, index)), ends[partition].first, ends[partition].stable
                )
                for index in there[route.topic]
                if (partition := TopicPartition(route.topic, index)) in ends
            )
        )
    behind: dict[TopicPartition, int] = {}
    for route, partitions in zip(wanted, found, strict=True):
        for each in partitions:
            if each.lag:
                # Of two routes of one topic, the time of the one that is further behind is shown for both.
                key, position = TopicPartition(route.topic, each.partition), max(each.first, each.loaded or 0)
                behind[key] = min(behind.get(key, position), position)
    times = await _written_at(cluster, behind)
    return tuple(
        _topic(route, partitions, times, files) for route, partitions in zip(wanted, found, strict=True)
    )


def _topic(
    route: Route, partitions: Sequence[PartitionStatus], times: Mapping[TopicPartition, int], files: Files
) -> TopicStatus:
    done = batches.fetch(files, route.state)
    last = done.batches[-1] if done is not None and done.batches else None
    waiting = [time_ms for partition, time_ms in times.items() if partition.topic == route.topic]
    return TopicStatus(
        route.topic,
        route.table,
        tuple(partitions),
        Checkpoint(files, route.checkpoint).committed(),
        None if done is None else done.rate(),
        None if last is None else last.ended_ms,
        min(waiting, default=None),
        None if done is None else done.error,
    )


async def _written_at(cluster: Cluster, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """When the first record at or after each position was written, as far as brokers tell it in time."""
    found: dict[TopicPartition, int] = {}
    if not positions:
        return found
    consumer = Consumer(cluster, positions, partition_max_bytes=1, patience=_PATIENCE_SECONDS)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while len(found) < len(positions) and time.monotonic() < deadline:
            for fetched in await consumer.poll():
                if fetched.records:
                    found[fetched.partition] = fetched.records[0].timestamp
                    consumer.drop(fetched.partition)
            await asyncio.sleep(0)
    except ClientFailure:
        pass  # a time that is not known is shown as such
    finally:
        await consumer.close()
    return found


def document(status: TopicStatus, now_ms: int) -> dict[str, object]:
    return {
        "topic": status.topic,
        "table": status.table,
        "batch": status.batch,
        "loaded": status.loaded,
        "lag": status.lag,
        "lag_ms": status.lag_ms(now_ms),
        "rate": None if status.rate is None else round(status.rate, 1),
        "last_commit_ms": status.last_commit_ms,
        "error": status.error,
        "partitions": [
            {
                "partition": each.partition,
                "loaded": each.loaded,
                "first": each.first,
                "end": each.end,
                "lag": each.lag,
            }
            for each in status.partitions
        ],
    }

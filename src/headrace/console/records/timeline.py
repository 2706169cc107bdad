"""How records lie in time: buckets by offsets alone, so that a billion records cost what ten do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from headrace.console.records.search import bounds
from headrace.core.ids import TopicPartition
from headrace.observe.record_times import RecordTimes

BUCKETS: Final = 40
MOST_PARTITIONS: Final = 64
"""Each bucket is a question about each partition. A wider topic shows some of them, and says so."""


class Bucket(NamedTuple):
    begin_ms: int
    records: int


class Timeline(NamedTuple):
    buckets: Sequence[Bucket]
    end_ms: int
    partitions: int
    """That were asked."""

    @property
    def most(self) -> int:
        return max((bucket.records for bucket in self.buckets), default=0)


async def timeline(cluster: Cluster, places: Sequence[TopicPartition]) -> Timeline | None:
    """None where there are no records, or nobody knows when they were written. Raises ClientFailure."""
    asked = list(places)[:MOST_PARTITIONS]
    first = await list_offsets(cluster, dict.fromkeys(asked, EARLIEST))
    end = await list_offsets(cluster, dict.fromkeys(asked, LATEST))
    filled = [place for place in asked if end[place].offset > first[place].offset]
    if not filled:
        return None
    newest = await list_offsets(cluster, dict.fromkeys(filled, MAX_TIMESTAMP))
    last_ms = max(newest[place].timestamp for place in filled)
    first_ms = await _oldest(cluster, {place: first[place].offset for place in filled})
    if first_ms is None or last_ms < first_ms:
        return None
    begins = bounds(first_ms, last_ms + 1, BUCKETS)
    cuts = await asyncio.gather(
        *(list_offsets(cluster, dict.fromkeys(filled, begin)) for begin in begins[1:])
    )
    edges: list[Mapping[TopicPartition, int]] = [
        {place: first[place].offset for place in filled},
        *({place: cut[place].offset for place in filled} for cut in cuts),
    ]
    ends = {place: end[place].offset for place in filled}
    return Timeline(
        [
            Bucket(begin, sum(_between(edges, at, place, ends[place]) for place in filled))
            for at, begin in enumerate(begins)
        ],
        last_ms,
        len(asked),
    )


def _between(edges: Sequence[Mapping[TopicPartition, int]], at: int, place: TopicPartition, end: int) -> int:
    """A time after the last record has no offset: there the end is meant."""
    begin = edges[at][place]
    until = edges[at + 1][place] if at + 1 < len(edges) else end
    return max(0, (end if until < 0 else until) - (end if begin < 0 else begin))


async def _oldest(cluster: Cluster, places: Mapping[TopicPartition, int]) -> int | None:
    times = RecordTimes()
    await times.learn(
        cluster,
        {
            broker: [(place, places[place]) for place in theirs]
            for broker, theirs in (await cluster.by_leader(places)).items()
        },
    )
    known = [moment for moment in times.known.values() if moment >= 0]
    return min(known, default=None)

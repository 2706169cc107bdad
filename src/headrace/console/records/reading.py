"""Reads records for one page: as much as a step may cost, and not more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer, Fetched
from headrace.client.offsets import ends_of, list_offsets, partitions_of
from headrace.client.partitioner import partition_for_key
from headrace.console.records.opening import batches_from
from headrace.console.records.search import (
    Refused,
    Wanted,
    moment_in,
    newest_positions,
    offset_in,
    to_read,
    written,
)
from headrace.console.records.step import PARTITION_BYTES, WAIT_MS, Budget, Step
from headrace.console.records.texts import ALONE, Decoding, Row, row
from headrace.core.ids import TopicPartition

ROWS: Final = 25
HITS: Final = 50
STEP_SECONDS: Final = 2.0
STEP_BYTES: Final = 32 * 1024 * 1024
MOST_PARTITIONS: Final = 500
"""That one page reads. Of a wider topic one partition is chosen."""


class Found(NamedTuple):
    rows: list[Row]
    partitions: list[int]
    """Those that were read."""
    scanned: int
    """Offsets that were looked at, with earlier steps."""
    whole: int
    bytes: int
    seconds: float
    after: str
    """Where to go on; empty at the end."""
    too_large: int
    """Records that nobody has looked into: with large values, or in batches that are too large or broken."""
    held: int
    """Offsets that an open transaction hides."""
    end: str = ""
    """Where a tail goes on after this."""

    @property
    def share(self) -> float:
        return 1.0 if not self.whole else min(1.0, self.scanned / self.whole)


async def read(
    cluster: Cluster,
    topic: str,
    asked: Wanted,
    decoding: Decoding | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Found:
    """Raises Refused and ClientFailure."""
    asked.compiled()
    places = await places_of(cluster, topic, asked)
    ends = await ends_of(cluster, places)
    stable = await list_offsets(cluster, dict.fromkeys(places, -1), read_committed=True)
    until = {place: stable[place].offset for place in places}
    begin = until if asked.begins_live else await _positions(cluster, asked, ends)
    whole = asked.whole or to_read(begin, until)
    budget = Budget(STEP_SECONDS, STEP_BYTES, HITS if asked.is_search else ROWS)
    reading = Step(topic, asked, until, decoding, budget)
    began = now()
    await reading.run(cluster, begin, now)
    rows = reading.rows
    if asked.begin == "newest" and not asked.is_search:
        rows = sorted(rows, key=lambda each: (-each.timestamp_ms, each.partition, -each.offset))[:ROWS]
    left = {place: at for place, at in reading.positions.items() if at < until[place]}
    is_over = not left or (asked.begin == "newest" and not asked.is_search)
    return Found(
        rows,
        [place.partition for place in places],
        min(whole, asked.done + reading.scanned),
        whole,
        reading.bytes,
        now() - began,
        "" if is_over else written(left),
        reading.too_large,
        sum(max(0, ends[place][1] - until[place]) for place in places),
        written(until),
    )


async def places_of(cluster: Cluster, topic: str, asked: Wanted) -> list[TopicPartition]:
    every = await partitions_of(cluster, topic)
    if asked.partition is not None:
        if asked.partition >= len(every):
            raise Refused(f"Topic {topic} has no partition {asked.partition}; it has {len(every)}.")
        return [TopicPartition(topic, asked.partition)]
    if asked.key and not asked.everywhere:
        return [TopicPartition(topic, partition_for_key(asked.key.encode(), len(every)))]
    if len(every) > MOST_PARTITIONS:
        raise Refused(f"Topic {topic} has {len(every):,} partitions. Choose one of them.")
    return every


async def _positions(
    cluster: Cluster, asked: Wanted, ends: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, int]:
    if asked.after:
        given = {place: asked.after[place.partition] for place in ends if place.partition in asked.after}
        return {place: max(offset, ends[place][0]) for place, offset in given.items()}
    if asked.begin == "newest" and not asked.is_search:
        return newest_positions(ends, ROWS)
    if asked.begin == "offset":
        offset = offset_in(asked.value)
        return {place: min(max(offset, first), end) for place, (first, end) in ends.items()}
    if asked.begin == "time":
        found = await list_offsets(cluster, dict.fromkeys(ends, moment_in(asked.value)))
        return {
            place: found[place].offset if found[place].offset >= 0 else end
            for place, (_, end) in ends.items()
        }
    return {place: first for place, (first, _) in ends.items()}


async def one(
    cluster: Cluster, place: TopicPartition, offset: int, decoding: Decoding | None = None
) -> Row | None:
    """The record at an offset, with much of its value; None where there is none."""
    consumer = Consumer(
        cluster,
        {place: offset},
        max_wait_ms=WAIT_MS,
        partition_max_bytes=PARTITION_BYTES,
        read_committed=False,
        patience=STEP_SECONDS,
        raw=True,
    )
    try:
        for fetched in await consumer.poll():
            return await asyncio.to_thread(_row_at, fetched, offset, decoding)
    finally:
        await consumer.close()
    return None


def _row_at(fetched: Fetched, offset: int, decoding: Decoding | None) -> Row | None:
    for batch in batches_from(fetched):
        for record in batch.records():
            if record.offset == offset:
                return row(fetched.partition.partition, record, ALONE, decoding)
            if record.offset > offset:
                return None
    return None

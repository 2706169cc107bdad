"""Records that were chosen by their offsets, whole: to be written once more."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer, Fetched
from headrace.client.errors import ClientFailure
from headrace.client.offsets import ends_of, list_offsets
from headrace.console.records.chosen import Chosen, Range
from headrace.console.records.opening import batches_from
from headrace.console.records.step import PARTITION_BYTES, WAIT_MS
from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord

MOST_BYTES: Final = 8 * 1024 * 1024
SECONDS: Final = 20.0


class Copied(NamedTuple):
    partition: int
    offset: int
    record: NewRecord


class Read(NamedTuple):
    records: list[Copied]
    """In the order of the partitions, and of the offsets in each."""
    missing: int
    bytes: int


async def read_chosen(cluster: Cluster, topic: str, chosen: Chosen) -> Read:
    """Of committed ones. Raises ClientFailure."""
    places = {TopicPartition(topic, each.partition) for each in chosen.ranges}
    bounds = await ends_of(cluster, places)
    stable = await list_offsets(cluster, dict.fromkeys(places, -1), read_committed=True)
    found: list[Copied] = []
    length = 0
    try:
        async with asyncio.timeout(SECONDS):
            for each in chosen.ranges:
                place = TopicPartition(topic, each.partition)
                first, end = max(each.first, bounds[place][0]), min(each.last + 1, stable[place].offset)
                if first < end:
                    some = await _read(cluster, topic, each._replace(first=first, last=end - 1))
                    length += sum(_length(one.record) for one in some)
                    found += some
                if length > MOST_BYTES:
                    raise ClientFailure("the chosen records have more than 8 MB", "choose fewer of them")
    except TimeoutError:
        raise ClientFailure(
            f"the chosen records could not be read in {SECONDS:.0f} s", "choose fewer"
        ) from None
    return Read(found, chosen.whole - len(found), length)


async def _read(cluster: Cluster, topic: str, wanted: Range) -> list[Copied]:
    place = TopicPartition(topic, wanted.partition)
    consumer = Consumer(
        cluster,
        {place: wanted.first},
        max_wait_ms=WAIT_MS,
        partition_max_bytes=PARTITION_BYTES,
        patience=cluster.request_timeout,
        raw=True,
    )
    found: list[Copied] = []
    try:
        while consumer.positions[place] <= wanted.last:
            for fetched in await consumer.poll():
                found += await asyncio.to_thread(_copied, fetched, wanted)
    finally:
        await consumer.close()
    return found


def _copied(fetched: Fetched, wanted: Range) -> list[Copied]:
    found: list[Copied] = []
    for batch in batches_from(fetched):
        for each in batch.records():
            if each.offset > wanted.last:
                return found
            if each.offset >= wanted.first:
                value = None if each.value is None else bytes(each.value)
                key = None if each.key is None else bytes(each.key)
                found.append(Copied(wanted.partition, each.offset, NewRecord(value, key, -1, each.headers)))
    return found


def _length(record: NewRecord) -> int:
    return (
        len(record.key or b"")
        + len(record.value or b"")
        + sum(len(each or b"") for _, each in record.headers)
    )

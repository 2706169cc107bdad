"""Monitoring events, read from their topic by the driver: they are few, and say only how many records there
were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.audit import event
from headrace.audit.event import Event
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.core.ids import TopicPartition
from headrace.protocol.records import Record
from headrace.spark.audit.offsets import Range
from headrace.spark.audit.picture import Partition


class News(NamedTuple):
    #: With the time at which each was stored.
    events: list[tuple[Event, int]]
    #: Incarnations, and since when each is gone.
    retired: list[tuple[str, int]]
    #: Records that are no events.
    strange: int


NO_NEWS: Final = News([], [], 0)


async def read_events(cluster: Cluster, wanted: Mapping[Partition, Range]) -> News:
    ends = {TopicPartition(*place): span.end for place, span in wanted.items()}
    consumer = Consumer(cluster, {TopicPartition(*place): span.start for place, span in wanted.items()})
    records: list[Record] = []
    try:
        while any(consumer.positions[place] < end for place, end in ends.items()):
            for fetched in await consumer.poll():
                end = ends[fetched.partition]
                records += [record for record in fetched.records if record.offset < end]
    finally:
        await consumer.close()
    return parse(records)


def parse(records: list[Record]) -> News:
    events: list[tuple[Event, int]] = []
    retired: list[tuple[str, int]] = []
    strange = 0
    for record in records:
        value = bytes(record.value or b"")
        try:
            if (gone := event.decode_retirement(value)) is not None:
                retired.append(gone)
            else:
                events.append((event.decode(value), record.timestamp))
        except event.InvalidEvent:
            strange += 1
    return News(events, retired, strange)

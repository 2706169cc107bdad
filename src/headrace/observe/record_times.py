"""When the record was written that a group reads next: what makes seconds of a lag.

One fetch to each leader gives the first bytes at each committed offset. A commit that does not move is asked
for once: its record stays where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.protocol import batch as batches
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse, PartitionData
from headrace.protocol.records import decode_records

NOTHING_LEFT: Final = -1
"""Only marks of transactions lie between the offset and the end."""
BYTES: Final = 16 * 1024
"""Of each partition. The head of a batch is enough; a small one is read whole."""
MOST_UNPACKED: Final = 1024 * 1024
AT_ONCE: Final = 150
MOST: Final = 600
"""Partitions in one look. The others have their turn in the next."""
_FETCH_AT_MOST: Final = 12  # from 13 on a fetch names topics by id

Place = tuple[TopicPartition, int]


class RecordTimes:
    """By partition and offset, in milliseconds since 1970."""

    def __init__(self) -> None:
        self.known: dict[Place, int] = {}

    def keep(self, places: Iterable[Place]) -> None:
        """Only these are of use still. A mark at the end may be followed by a record at any time."""
        self.known = {
            place: told
            for place in places
            if (told := self.known.get(place)) is not None and told != NOTHING_LEFT
        }

    async def learn(self, cluster: Cluster, wanted: Mapping[int, Iterable[Place]]) -> None:
        """By leader. Who does not answer tells nothing, and is asked again with the next look."""
        left = MOST
        questions = []
        for broker_id, places in wanted.items():
            unknown = [place for place in places if place not in self.known][:left]
            left -= len(unknown)
            questions += [(broker_id, unknown[at : at + AT_ONCE]) for at in range(0, len(unknown), AT_ONCE)]
        answers = await asyncio.gather(*(_ask(cluster, *question) for question in questions))
        for answer in answers:
            self.known.update(answer)


async def _ask(cluster: Cluster, broker_id: int, places: list[Place]) -> dict[Place, int]:
    topics: dict[str, list[FetchPartition]] = {}
    asked: dict[TopicPartition, int] = {}
    again = []
    for partition, offset in places:
        if partition in asked:  # one offset of a partition in each request
            again.append((partition, offset))
            continue
        asked[partition] = offset
        topics.setdefault(partition.topic, []).append(
            FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=BYTES)
        )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=AT_ONCE * BYTES,
        session_epoch=-1,
        topics=[FetchTopic(topic=name, partitions=partitions) for name, partitions in topics.items()],
    )
    try:
        reply = await cluster.ask_broker(broker_id, request, FetchResponse, at_most=_FETCH_AT_MOST)
    except ClientFailure:
        return {}
    found = {}
    for topic in reply.responses:
        for data in topic.partitions:
            partition = TopicPartition(topic.topic, data.partition_index)
            told = time_in(data, asked[partition])
            if told is not None:
                found[partition, asked[partition]] = told
    return {**found, **(await _ask(cluster, broker_id, again) if again else {})}


def time_in(data: PartitionData, offset: int) -> int | None:
    """Of the first record from there on; None where the bytes do not tell."""
    if data.error_code:
        return None
    told = bytes(data.records or b"")
    after = offset
    for at, header in _heads(told):
        if header.last_offset < offset:
            continue
        if not header.is_control:
            return _time_of(told, at, header, offset)
        after = header.next_offset
    is_whole = after >= data.high_watermark
    return NOTHING_LEFT if told and is_whole else None


def _heads(data: bytes) -> Iterator[tuple[int, batches.BatchHeader]]:
    """The last batch may be cut off behind its head."""
    at = 0
    while len(data) - at >= batches.HEADER_SIZE:
        header = batches.read_header(data, at)
        if header.magic != batches.MAGIC or header.batch_length < batches.MIN_BATCH_LENGTH:
            return
        yield at, header
        at += header.size


def _time_of(data: bytes, at: int, header: batches.BatchHeader, offset: int) -> int | None:
    """A cut-off batch gives the time of its first record, which was sent with the others."""
    if header.is_log_append_time:
        return header.max_timestamp
    if header.size <= len(data) - at:
        try:
            for record in decode_records(data, at, max_bytes=MOST_UNPACKED):
                if record.offset >= offset:
                    return record.timestamp if record.timestamp >= 0 else None
        except HeadraceError:
            pass  # damaged, or far larger than it looks
    return header.base_timestamp if header.base_timestamp >= 0 else None

"""The batches of a partition as they are, read by fetch from its leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.refusals import refusal, refusal_of_leader
from headrace.core.ids import TopicPartition
from headrace.protocol import batch as batches
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse

_FETCH_AT_MOST: Final = 12  # from 13 on a fetch names topics by id
_FETCH_BYTES: Final = 1024 * 1024
_WAIT_MS: Final = 500
_EMPTY_ANSWERS: Final = 20
"""A partition whose end is known has records before it, or compaction has taken them."""


async def read_batches(
    cluster: Cluster, partition: TopicPartition, start: int, end: int, *, is_compacted: bool = False
) -> AsyncGenerator[memoryview, None]:
    """Each whole batch that has offsets from `start` up to `end`. The first may begin before."""
    position, empty = start, 0
    while position < end:
        data = await _fetch(cluster, partition, position)
        moved = False
        for at, header in batches.iterate(data):
            if header.base_offset >= end:
                return
            if header.next_offset <= position:
                continue
            position, moved = header.next_offset, True
            yield data[at : at + header.size]
        empty = 0 if moved else empty + 1
        if empty and is_compacted:
            return
        if empty >= _EMPTY_ANSWERS:
            raise ClientFailure(
                f"{partition} says that it ends at {end}, and has nothing at {position}",
                "`headrace cluster status` says whether records are damaged",
            )


async def _fetch(cluster: Cluster, partition: TopicPartition, offset: int) -> memoryview:
    request = FetchRequest(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=partition.topic,
                partitions=[
                    FetchPartition(
                        partition=partition.partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
                    )
                ],
            )
        ],
    )

    async def attempt() -> memoryview:
        leader = await cluster.leader(partition)
        reply = await cluster.ask_broker(leader, request, FetchResponse, at_most=_FETCH_AT_MOST)
        if reply.error_code:
            raise refusal(reply.error_code, f"broker {leader}")
        ((data,),) = (topic.partitions for topic in reply.responses)
        if data.error_code:
            raise refusal_of_leader(data.error_code, f"partition {partition}")
        await asyncio.sleep(0)
        return memoryview(bytes(data.records or b""))

    return await cluster.retried(attempt)

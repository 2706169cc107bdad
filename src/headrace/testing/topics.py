"""The topics of a test cluster: made, and read as a whole. Blocks, and needs no client library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headrace.client import admin, offsets
from headrace.client.apart import run_apart
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.security import ClientSecurity
from headrace.protocol.records import Headers

_NAME = "headrace-testing"


class TopicRecord(NamedTuple):
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    headers: Headers


class Topics:
    def __init__(self, bootstrap: str, security: ClientSecurity) -> None:
        self._bootstrap = bootstrap
        self._security = security

    def create(
        self, name: str, *, partitions: int, replication_factor: int, configs: Mapping[str, str]
    ) -> None:
        async def work() -> None:
            async with self._cluster() as cluster:
                await admin.create_topic(
                    cluster,
                    name,
                    partitions=partitions,
                    replication_factor=replication_factor,
                    configs=configs,
                )

        run_apart(work(), _NAME)

    def records(self, topic: str) -> list[TopicRecord]:
        async def work() -> list[TopicRecord]:
            async with self._cluster() as cluster:
                return await _records(cluster, topic)

        return run_apart(work(), _NAME)

    def _cluster(self) -> Cluster:
        return Cluster(self._bootstrap, client_id=_NAME, security=self._security)


async def _records(cluster: Cluster, topic: str) -> list[TopicRecord]:
    """Up to where each partition ended when this began: a test may produce meanwhile."""
    partitions = await offsets.partitions_of(cluster, topic)
    first = await offsets.list_offsets(cluster, dict.fromkeys(partitions, offsets.EARLIEST))
    last = await offsets.list_offsets(cluster, dict.fromkeys(partitions, offsets.LATEST), read_committed=True)
    ends = {each: last[each].offset for each in partitions if first[each].offset < last[each].offset}
    consumer = Consumer(cluster, {each: first[each].offset for each in ends})
    found: list[TopicRecord] = []
    try:
        while consumer.positions:
            for fetched in await consumer.poll():
                end = ends[fetched.partition]
                found += [
                    TopicRecord(fetched.partition.partition, *record)
                    for record in fetched.records
                    if record.offset < end
                ]
                if fetched.next_offset >= end:
                    consumer.drop(fetched.partition)
    finally:
        await consumer.close()
    return sorted(found, key=lambda record: record[:2])

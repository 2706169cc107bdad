"""The compacted topic of verdicts: written by the audit, read by reports and by whoever waits for a
certificate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from headrace.audit.verdict import State, Verdict, decode
from headrace.client import admin
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.errors import Refused
from headrace.client.offsets import ends_of, partitions_of
from headrace.client.producer import Producer
from headrace.core.errors import HeadraceError
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.records import NewRecord

Verdicts = dict[tuple[str, int], Verdict]
"""The last one of each topic and window."""


async def publish(cluster: Cluster, topic: str, verdicts: Iterable[Verdict]) -> None:
    """All of one topic go to one partition, in their order. The client is closed afterwards."""
    async with cluster:
        await _make_sure(cluster, topic)
        producer = Producer(cluster)
        for verdict in verdicts:
            await producer.send(topic, NewRecord(key=verdict.key, value=verdict.encode()))
        await producer.flush()


async def _make_sure(cluster: Cluster, topic: str) -> None:
    try:
        await partitions_of(cluster, topic)
    except Refused as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        try:
            await admin.create_topic(cluster, topic, partitions=1, configs={"cleanup.policy": "compact"})
        except Refused as other:
            if other.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise


class VerdictReader:
    """Keeps up with the topic. `seen` holds what was read so far."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._consumer: Consumer | None = None
        self.seen: Verdicts = {}

    async def catch_up(self) -> Verdicts:
        """All that the topic holds now. A topic that does not exist yet holds nothing."""
        try:
            partitions = await partitions_of(self._cluster, self._topic)
        except Refused as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return self.seen
        ends = await ends_of(self._cluster, partitions)
        if self._consumer is None:
            self._consumer = Consumer(self._cluster, {place: first for place, (first, _) in ends.items()})
        behind = {place: end for place, (first, end) in ends.items() if end > first}
        while any(self._consumer.positions[place] < end for place, end in behind.items()):
            await self._poll(self._consumer)
        return self.seen

    async def _poll(self, consumer: Consumer) -> bool:
        news = False
        for fetched in await consumer.poll():
            for record in fetched.records:
                if record.value is None:
                    continue
                try:
                    verdict = decode(bytes(record.value))
                except HeadraceError:
                    continue  # somebody else's record in our topic
                self.seen[verdict.topic, verdict.window_ms] = verdict
                news = True
        return news

    async def follow(self) -> AsyncIterator[Verdicts]:
        """What is seen, once at first and then whenever something is new."""
        yield await self.catch_up()
        while True:
            if self._consumer is None:
                await asyncio.sleep(1)
                yield await self.catch_up()
            elif await self._poll(self._consumer):
                yield self.seen

    async def close(self) -> None:
        if self._consumer is not None:
            await self._consumer.close()


def settled(verdict: Verdict | None) -> bool:
    """Whether a scheduler need not wait any longer."""
    return verdict is not None and verdict.state in (State.CERTIFIED, State.DIFFERENT)

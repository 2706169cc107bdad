"""Reads partitions that were assigned by name, without a group. Long polls, one for each leader."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.errors import ConnectionLost, Refused, TimedOut, Unreachable
from headrace.client.refusals import RETRIABLE, refusal, refusal_of_leader
from headrace.client.visible import records_from
from headrace.core.ids import TopicPartition
from headrace.core.ports import Buffer
from headrace.core.tasks import spawn
from headrace.protocol.batch import iterate
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse, PartitionData
from headrace.protocol.records import Record

_FETCH_AT_MOST: Final = 12  # from 13 on a fetch names topics by id
_PAUSE: Final = 0.1


class RawBatches(NamedTuple):
    """Whole batches as the broker sent them; the first may begin before `offset`, which was asked for."""

    offset: int
    data: Buffer
    aborted: list[tuple[int, int]]
    """Producer and first offset of transactions that were given up."""


class Fetched(NamedTuple):
    partition: TopicPartition
    records: list[Record]
    next_offset: int
    end_offset: int
    """Where the partition ends for this consumer, as the broker said when it answered."""
    raw: RawBatches | None = None
    """In the place of records, for a consumer that leaves them as they are."""


class Consumer:
    """`positions` say where each partition is read next; they move as records are returned."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, int],
        *,
        max_wait_ms: int = 500,
        max_bytes: int = 50 * 1024 * 1024,
        partition_max_bytes: int = 1024 * 1024,
        read_committed: bool = True,
        patience: float = 30.0,
        raw: bool = False,
    ) -> None:
        """With `raw` the records are not decoded: `Fetched.raw` has their batches."""
        self.cluster = cluster
        self.positions = dict(positions)
        self.max_wait_ms = max_wait_ms
        self.max_bytes = max_bytes
        self.partition_max_bytes = partition_max_bytes
        self.read_committed = read_committed
        self.patience = patience
        self.raw = raw
        self._polls: dict[int, asyncio.Task[list[Fetched]]] = {}
        self._failing_since: float | None = None

    def drop(self, partition: TopicPartition) -> None:
        """Read this partition no more."""
        self.positions.pop(partition, None)

    async def close(self) -> None:
        polls = list(self._polls.values())
        self._polls.clear()
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)

    async def poll(self) -> list[Fetched]:
        """What the first leader answers; may be empty after `max_wait_ms`. Leaders that move are followed."""
        try:
            fetched = await self._first_answer()
        except (ConnectionLost, TimedOut, Unreachable, Refused) as error:
            if isinstance(error, Refused) and error.code not in RETRIABLE:
                raise
            now = asyncio.get_running_loop().time()
            self._failing_since = self._failing_since or now
            if now - self._failing_since > self.patience:
                self.cluster.waits.done(self)
                raise
            self.cluster.waits.failed(self, error)
            self.cluster.forget()
            await asyncio.sleep(_PAUSE)
            return []
        self._failing_since = None
        self.cluster.waits.done(self)
        return fetched

    async def _first_answer(self) -> list[Fetched]:
        groups = await self.cluster.by_leader(self.positions)
        for broker_id, partitions in groups.items():
            if broker_id not in self._polls:
                self._polls[broker_id] = spawn(
                    f"a fetch from broker {broker_id}", self._fetch(broker_id, partitions), is_awaited=True
                )
        done, _ = await asyncio.wait(self._polls.values(), return_when=asyncio.FIRST_COMPLETED)
        fetched = []
        for broker_id in [broker_id for broker_id, task in self._polls.items() if task in done]:
            for item in await self._polls.pop(broker_id):
                # A partition may have been dropped, or moved to another leader, while the poll was out.
                if self.positions.get(item.partition, item.next_offset) <= item.next_offset:
                    fetched.append(item)
        for item in fetched:
            if item.partition in self.positions:
                self.positions[item.partition] = item.next_offset
        return [item for item in fetched if item.partition in self.positions]

    async def _fetch(self, broker_id: int, partitions: list[TopicPartition]) -> list[Fetched]:
        asked = {partition: self.positions[partition] for partition in partitions}
        reply = await self.cluster.ask_broker(
            broker_id, self._request(asked), FetchResponse, at_most=_FETCH_AT_MOST
        )
        if reply.error_code:
            raise refusal(reply.error_code, f"broker {broker_id}")
        fetched: list[Fetched] = []
        refused: Refused | None = None
        for topic in reply.responses:
            for data in topic.partitions:
                partition = TopicPartition(topic.topic, data.partition_index)
                if data.error_code:
                    refused = refused or refusal_of_leader(data.error_code, f"partition {partition}")
                else:
                    fetched.append(self._open(partition, asked[partition], data))
        if refused is None:
            return fetched
        if refused.code not in RETRIABLE or not any(each.records for each in fetched):
            raise refused
        # One partition that cannot be read keeps nobody from the others: they are read to their ends first.
        self.cluster.forget()
        return fetched

    def _open(self, partition: TopicPartition, offset: int, data: PartitionData) -> Fetched:
        aborted = [(entry.producer_id, entry.first_offset) for entry in data.aborted_transactions or ()]
        content = data.records or b""
        end = data.last_stable_offset if self.read_committed else data.high_watermark
        end = end if end >= 0 else data.high_watermark
        if self.raw:
            position = max((header.next_offset for _, header in iterate(content)), default=offset)
            raw = RawBatches(offset, content, aborted)
            return Fetched(partition, [], max(offset, position), end, raw)
        records, position = records_from(content, offset, aborted)
        return Fetched(partition, records, position, end)

    def _request(self, asked: Mapping[TopicPartition, int]) -> FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        for (name, index), offset in asked.items():
            topics.setdefault(name, []).append(
                FetchPartition(
                    partition=index, fetch_offset=offset, partition_max_bytes=self.partition_max_bytes
                )
            )
        return FetchRequest(
            max_wait_ms=self.max_wait_ms,
            min_bytes=1,
            max_bytes=self.max_bytes,
            isolation_level=int(self.read_committed),
            session_epoch=-1,
            topics=[FetchTopic(topic=name, partitions=partitions) for name, partitions in topics.items()],
        )

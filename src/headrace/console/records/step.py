"""Records of some partitions, within a budget: what a page of records and a tail have in common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.console.records.filters import Filter, TooLarge
from headrace.console.records.search import Wanted
from headrace.console.records.texts import Decoding, Row, row
from headrace.core.ids import TopicPartition
from headrace.protocol.records import Record

PARTITION_BYTES: Final = 1024 * 1024
_FETCH_BYTES: Final = 8 * 1024 * 1024
WAIT_MS: Final = 200


class Budget(NamedTuple):
    seconds: float
    bytes: int
    rows: int
    """Of a search: it goes on later where it has found so many."""


class Step:
    """One go at partitions: from where it is told, until the budget is used up or there are enough rows."""

    def __init__(
        self,
        topic: str,
        asked: Wanted,
        condition: Filter | None,
        until: Mapping[TopicPartition, int],
        decoding: Decoding | None,
        budget: Budget,
    ) -> None:
        self.rows: list[Row] = []
        self.positions: dict[TopicPartition, int] = {}
        self.scanned = self.bytes = self.too_large = 0
        self._topic = topic
        self._key = asked.key.encode() if asked.key else None
        self._condition = condition
        self._until = until
        self._decoding = decoding
        self._budget = budget
        self._is_newest = asked.begin == "newest" and not asked.is_search

    async def run(
        self, cluster: Cluster, begin: Mapping[TopicPartition, int], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.positions = {place: at for place, at in begin.items() if at < self._until[place]}
        deadline = now() + self._budget.seconds
        consumer = Consumer(
            cluster,
            self.positions,
            max_wait_ms=WAIT_MS,
            max_bytes=_FETCH_BYTES,
            partition_max_bytes=PARTITION_BYTES,
            patience=self._budget.seconds,
        )
        try:
            while consumer.positions and now() < deadline and self.bytes < self._budget.bytes:
                for fetched in await consumer.poll():
                    place = fetched.partition
                    is_full = await asyncio.to_thread(self._take, place, fetched.records, fetched.next_offset)
                    if is_full:
                        return
                    if self.positions[place] >= self._until[place]:
                        consumer.drop(place)
        finally:
            await consumer.close()

    def _take(self, place: TopicPartition, records: list[Record], next_offset: int) -> bool:
        """Whether there are rows enough. The position is behind the last record that was looked at."""
        for record in records:
            if record.offset >= self._until[place]:
                break
            self.bytes += len(record.key or b"") + len(record.value or b"")
            self._move(place, record.offset + 1)
            if self._is_wanted(place, record):
                self.rows.append(row(place.partition, record, decoding=self._decoding))
                if len(self.rows) >= self._budget.rows and not self._is_newest:
                    return True
        self._move(place, min(next_offset, self._until[place]))
        return False

    def _move(self, place: TopicPartition, offset: int) -> None:
        if offset > self.positions[place]:
            self.scanned += offset - self.positions[place]
            self.positions[place] = offset

    def _is_wanted(self, place: TopicPartition, record: Record) -> bool:
        if self._key is not None and record.key != self._key:
            return False
        if self._condition is None:
            return True
        try:
            return self._condition.takes(self._topic, place.partition, record)
        except TooLarge:
            self.too_large += 1
            return False

"""Records of some partitions, within a budget: what a page of records and a tail have in common."""

from __future__ import annotations

import asyncio
import atexit
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer, Fetched
from headrace.console.records.filter_process import TAKEN, TOO_LARGE
from headrace.console.records.filtering import FilterProcesses, TooDear, questions
from headrace.console.records.opening import Batch, batches_from
from headrace.console.records.search import Refused, Wanted
from headrace.console.records.texts import Decoding, Row, row
from headrace.core.ids import TopicPartition
from headrace.protocol.records import Record

PARTITION_BYTES: Final = 1024 * 1024
_FETCH_BYTES: Final = 8 * 1024 * 1024
WAIT_MS: Final = 200
_PART: Final = 1000
"""Records that are looked at before anybody looks at the time."""
_FILTERS: Final = FilterProcesses()
atexit.register(_FILTERS.close)


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
        until: Mapping[TopicPartition, int],
        decoding: Decoding | None,
        budget: Budget,
    ) -> None:
        """A filter of `asked` has been compiled before."""
        self.rows: list[Row] = []
        self.positions: dict[TopicPartition, int] = {}
        self.scanned = self.bytes = self.too_large = 0
        self._topic = topic
        self._key = asked.key.encode() if asked.key else None
        self._filter = asked.filter
        self._until = until
        self._decoding = decoding
        self._budget = budget
        self._is_newest = asked.begin == "newest" and not asked.is_search

    async def run(
        self, cluster: Cluster, begin: Mapping[TopicPartition, int], now: Callable[[], float] = time.monotonic
    ) -> None:
        """Raises Refused for a filter that costs too much, and ClientFailure."""
        self.positions = {place: at for place, at in begin.items() if at < self._until[place]}
        deadline = now() + self._budget.seconds
        consumer = Consumer(
            cluster,
            self.positions,
            max_wait_ms=WAIT_MS,
            max_bytes=_FETCH_BYTES,
            partition_max_bytes=PARTITION_BYTES,
            patience=self._budget.seconds,
            raw=True,
        )

        def is_used_up() -> bool:
            return now() >= deadline or self.bytes >= self._budget.bytes

        try:
            while consumer.positions and not is_used_up():
                for fetched in await consumer.poll():
                    place = fetched.partition
                    if await asyncio.to_thread(self._take, fetched, is_used_up):
                        return
                    if self.positions[place] >= self._until[place]:
                        consumer.drop(place)
        except TooDear as error:
            raise Refused(f"The filter is refused: {error}.") from None
        finally:
            await consumer.close()

    def _take(self, fetched: Fetched, is_used_up: Callable[[], bool]) -> bool:
        """Whether this was enough. The position is behind the last record that was looked at."""
        place = fetched.partition
        for batch in batches_from(fetched):
            if self.positions[place] >= self._until[place]:
                break
            for part in self._parts(place, batch):
                if self._take_part(place, part):
                    return True
                if is_used_up() and self.positions[place] < batch.next_offset:
                    return True
            self.too_large += batch.left_out
            self._move(place, min(batch.next_offset, self._until[place]))
        self._move(place, min(fetched.next_offset, self._until[place]))
        return False

    def _parts(self, place: TopicPartition, batch: Batch) -> Iterator[Sequence[Record]]:
        until = self._until[place]
        records = (record for record in batch.records() if record.offset < until)
        while part := list(islice(records, _PART)):
            yield from questions(part)

    def _take_part(self, place: TopicPartition, records: Sequence[Record]) -> bool:
        """Whether there are rows enough."""
        wanted = self._wanted(place, records)
        for record in records:
            self.bytes += len(record.key or b"") + len(record.value or b"")
            self._move(place, record.offset + 1)
            if record.offset in wanted:
                self.rows.append(row(place.partition, record, decoding=self._decoding))
                if len(self.rows) >= self._budget.rows and not self._is_newest:
                    return True
        return False

    def _move(self, place: TopicPartition, offset: int) -> None:
        if offset > self.positions[place]:
            self.scanned += offset - self.positions[place]
            self.positions[place] = offset

    def _wanted(self, place: TopicPartition, records: Sequence[Record]) -> set[int]:
        """Their offsets."""
        if self._key is not None:
            records = [record for record in records if record.key == self._key]
        if not self._filter or not records:
            return {record.offset for record in records}
        verdicts = _FILTERS.verdicts(self._filter, self._topic, place.partition, records)
        self.too_large += verdicts.count(TOO_LARGE)
        return {record.offset for record, verdict in zip(records, verdicts, strict=True) if verdict == TAKEN}

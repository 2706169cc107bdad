"""A topic from its brokers: fetched on a loop in a thread of its own, so that it works in a notebook too."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from queue import Queue
from typing import Final

from headrace.arrow.columns import FIRST, Bounds, Columns
from headrace.arrow.errors import DamagedHistory
from headrace.arrow.options import Wish
from headrace.arrow.partition_reader import Block, Reading, add_batch
from headrace.client import offsets
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer, RawBatches
from headrace.client.errors import TimedOut
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.client.security import ClientSecurity
from headrace.client.visible import visible_batches
from headrace.core.errors import ClientError
from headrace.core.ids import TopicPartition

_BLOCKS_AHEAD: Final = 4
_PARTITION_BYTES: Final = 8 * 1024 * 1024
_MOST_BYTES: Final = 32 * 1024 * 1024
"""Of all partitions that are read together, before what there is of them is given away."""
_PATIENCE_S: Final = 120.0
"""Brokers that have lost the end of a log would be asked for it for ever."""

Spans = Mapping[TopicPartition, tuple[int, int]]
"""Of each partition the first offset, and the one behind the last."""


async def resolve(cluster: Cluster, wish: Wish) -> dict[TopicPartition, tuple[int, int]]:
    """Of each partition the offsets to read: from what was asked for, within what there is now."""
    known = await offsets.partitions_of(cluster, wish.topic)
    wanted = [each for each in known if wish.partitions is None or each.partition in wish.partitions]
    first = await list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    last = await list_offsets(cluster, dict.fromkeys(wanted, LATEST), read_committed=wish.committed_only)
    begin = {each: max(first[each].offset, wish.bounds(each.partition).first_offset) for each in wanted}
    if wish.first_ms > FIRST and wanted:
        at = await list_offsets(cluster, dict.fromkeys(wanted, max(0, wish.first_ms)))
        for each, found in at.items():
            begin[each] = max(begin[each], found.offset if found.offset >= 0 else last[each].offset)
    return {
        each: (begin[each], min(last[each].offset, wish.bounds(each.partition).next_offset))
        for each in wanted
    }


class BrokerReader:
    """`read` makes a RecordBatch's columns of what brokers have, up to where they end now."""

    def __init__(self, bootstrap: str, security: ClientSecurity, wish: Wish, reading: Reading) -> None:
        self._bootstrap = bootstrap
        self._security = security
        self._wish = wish
        times = Bounds(first_ms=wish.first_ms, next_ms=wish.next_ms)
        self._reading = reading._replace(bounds=times, committed_only=wish.committed_only)

    def blocks(self) -> Iterator[Block]:
        return in_thread(self._fetched)

    async def _fetched(self) -> AsyncIterator[Block]:
        async with Cluster(self._bootstrap, client_id="headrace-arrow", security=self._security) as cluster:
            async for block in SpanReader(
                cluster, await resolve(cluster, self._wish), self._reading
            ).blocks():
                yield block


def in_thread(fetch: Callable[[], AsyncIterator[Block]]) -> Iterator[Block]:
    """What is fetched on a loop in a thread of its own, a few blocks ahead."""
    given: Queue[Block | BaseException | None] = Queue(_BLOCKS_AHEAD)
    stopped = threading.Event()

    async def fill() -> None:
        async with contextlib.aclosing(fetch()) as blocks:  # type: ignore[type-var]  # of a generator
            async for block in blocks:
                if stopped.is_set():
                    return
                # This thread has nothing else to do: to wait here is how the reader slows the brokers down.
                given.put(block)

    def work() -> None:
        try:
            asyncio.run(fill())
            given.put(None)
        except BaseException as error:  # whoever reads gets it
            given.put(error)

    thread = threading.Thread(target=work, name="headrace-arrow", daemon=True)
    thread.start()
    try:
        while (each := given.get()) is not None:
            if isinstance(each, BaseException):
                raise each
            yield each
    finally:
        stopped.set()
        while thread.is_alive():
            while not given.empty():
                given.get_nowait()
            thread.join(0.05)


class SpanReader:
    """Everything between two offsets of each partition. Blocks of a partition come in its order."""

    def __init__(self, cluster: Cluster, spans: Spans, reading: Reading) -> None:
        """Of the bounds of `reading` the times count."""
        self._cluster = cluster
        self._reading = reading
        self._spans = {each: span for each, span in spans.items() if span[0] < span[1]}
        self._columns = {each: self._columns_for(*span) for each, span in self._spans.items()}
        self._given_to = {each: first for each, (first, _) in self._spans.items()}

    async def blocks(self) -> AsyncIterator[Block]:
        consumer = Consumer(
            self._cluster,
            dict(self._given_to),
            partition_max_bytes=_PARTITION_BYTES,
            read_committed=self._reading.committed_only,
            raw=True,
        )
        moved_at = time.monotonic()
        try:
            while consumer.positions:
                has_moved = False
                for partition, _, next_offset, _, raw in await consumer.poll():
                    assert raw is not None, "the consumer was made so"
                    has_moved |= self._take_in(partition, raw)
                    is_done = next_offset >= self._spans[partition][1]
                    if is_done:
                        consumer.drop(partition)
                    filled = self._columns[partition]
                    if filled.rows and (is_done or self._reading.is_full(filled)):
                        yield Block(partition, filled.take())
                if sum(columns.size for columns in self._columns.values()) > _MOST_BYTES:
                    for partition, columns in self._columns.items():
                        if columns.rows:
                            yield Block(partition, columns.take())
                if has_moved:
                    moved_at = time.monotonic()
                elif time.monotonic() - moved_at > _PATIENCE_S:
                    raise self._stalled(consumer.positions)
        finally:
            await consumer.close()

    def _stalled(self, positions: Mapping[TopicPartition, int]) -> TimedOut:
        partition, position = next(iter(positions.items()))
        return TimedOut(
            f"{partition} gave nothing at offset {position} for {_PATIENCE_S:g} s, though it had records up "
            f"to {self._spans[partition][1]}"
        )

    def _columns_for(self, first: int, end: int) -> Columns:
        return self._reading.columns(self._reading.bounds._replace(first_offset=first, next_offset=end))

    def _take_in(self, partition: TopicPartition, raw: RawBatches) -> bool:
        """Whether it goes on. What two leaders sent, one before and one after a move, is taken once."""
        view = memoryview(raw.data)
        before, end = self._given_to[partition], self._spans[partition][1]
        try:
            for at, header, is_shown in visible_batches(view, raw.aborted):
                if header.next_offset <= self._given_to[partition]:
                    continue
                if is_shown and header.base_offset < end:
                    add_batch(self._columns[partition], header, view[at : at + header.size])
                self._given_to[partition] = header.next_offset
        except ClientError as error:
            reached = self._given_to[partition]
            raise DamagedHistory(f"what the brokers sent of {partition}", reached, str(error)) from None
        return self._given_to[partition] > before

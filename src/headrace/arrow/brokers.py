"""A topic from its brokers: fetched on a loop in a thread of its own, so that it works in a notebook too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from queue import Queue
from typing import Final

from headrace.arrow.columns import FIRST, Columns
from headrace.arrow.errors import DamagedHistory
from headrace.arrow.options import Wish
from headrace.arrow.partition_reader import Block, Reading, add_batch
from headrace.client import offsets
from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer, RawBatches
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.client.security import ClientSecurity
from headrace.client.visible import visible_batches
from headrace.core.errors import ClientError
from headrace.core.ids import TopicPartition

_BLOCKS_AHEAD: Final = 4
_PARTITION_BYTES: Final = 8 * 1024 * 1024


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
        self._reading = reading

    def blocks(self) -> Iterator[Block]:
        given: Queue[Block | BaseException | None] = Queue(_BLOCKS_AHEAD)
        stopped = threading.Event()

        def work() -> None:
            try:
                asyncio.run(self._fill(given, stopped))
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

    async def _fill(self, given: Queue[Block | BaseException | None], stopped: threading.Event) -> None:
        async with Cluster(self._bootstrap, client_id="headrace-arrow", security=self._security) as cluster:
            async for block in self._fetched(cluster):
                if stopped.is_set():
                    return
                # This thread has nothing else to do: to wait here is how the reader slows the brokers down.
                given.put(block)

    async def _fetched(self, cluster: Cluster) -> AsyncIterator[Block]:
        spans = await resolve(cluster, self._wish)
        open_now = {each: span for each, span in spans.items() if span[0] < span[1]}
        columns = {each: self._columns(each, *span) for each, span in open_now.items()}
        given_to = {each: first for each, (first, _) in open_now.items()}
        consumer = Consumer(
            cluster,
            {each: first for each, (first, _) in open_now.items()},
            partition_max_bytes=_PARTITION_BYTES,
            read_committed=self._wish.committed_only,
            raw=True,
        )
        try:
            while consumer.positions:
                for partition, _, next_offset, _, raw in await consumer.poll():
                    assert raw is not None, "the consumer was made so"
                    filling = columns[partition]
                    given_to[partition] = self._take_in(partition, filling, raw, given_to[partition])
                    is_done = next_offset >= open_now[partition][1]
                    if is_done:
                        consumer.drop(partition)
                    if filling.rows and (is_done or self._reading.is_full(filling)):
                        yield Block(partition, filling.take())
        finally:
            await consumer.close()

    def _columns(self, partition: TopicPartition, first: int, end: int) -> Columns:
        bounds = self._wish.bounds(partition.partition)
        return self._reading.columns(bounds._replace(first_offset=first, next_offset=end))

    def _take_in(self, partition: TopicPartition, columns: Columns, raw: RawBatches, given_to: int) -> int:
        """Where it goes on. What two leaders sent, one before and one after a move, is taken once."""
        view = memoryview(raw.data)
        try:
            for at, header, is_shown in visible_batches(view, raw.aborted):
                if header.next_offset <= given_to:
                    continue
                if is_shown:
                    add_batch(columns, header, view[at : at + header.size])
                given_to = header.next_offset
        except ClientError as error:
            raise DamagedHistory(f"what the brokers sent of {partition}", given_to, str(error)) from None
        return given_to

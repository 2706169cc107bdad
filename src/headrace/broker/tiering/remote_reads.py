"""Fetches of history that is only in the store: threads bring it, verified, and then the fetch is read again.

A reader that comes in order finds the next piece there before it asks: one piece ahead of it is fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from headrace.broker.fetch.remote_read import RemoteRead
from headrace.broker.tiering.chunks import Chunk, ChunkCache
from headrace.broker.tiering.fetch_job import HistoryReader
from headrace.broker.tiering.thread_limit import LimitedThreads
from headrace.core.errors import HistoryUnavailable, OffsetOutOfRange
from headrace.core.failures import report
from headrace.core.ports import FileRange
from headrace.log.log_reads import EMPTY_SLICE
from headrace.log.lookup import TimestampOffset

if TYPE_CHECKING:
    from headrace.broker.runtime.runtime import Runtime
    from headrace.broker.tiering.history import Beginning, PartitionHistory
    from headrace.core.ports_objects import ObjectStore

FAILED_SECONDS: Final = 1.0
"""For so long a reader is told what failed last, and the store is left in peace."""

Then = Callable[[], None]
_Result = TypeVar("_Result")


class RemoteReads:
    def __init__(
        self, runtime: Runtime, store: ObjectStore, threads: LimitedThreads, cache: ChunkCache
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._threads = threads
        self._cache = cache
        self._metrics = runtime.metrics.tiering
        self._running: dict[tuple[PartitionHistory, int], list[Then]] = {}
        self._failed: dict[PartitionHistory, tuple[int, float, HistoryUnavailable]] = {}

    def read(
        self, history: PartitionHistory, offset: int, max_bytes: int, *, min_one: bool, waits: bool
    ) -> tuple[FileRange, list[tuple[int, int]]]:
        """Records from an offset before the local log start on, and the transactions to pass over.
        RemoteRead if they have to be fetched first; not `waits`: nothing then."""
        start = self._start_of(history)
        if offset < start or history.continued is None:
            raise OffsetOutOfRange(f"offset {offset} of {_name(history)} is before the log start {start}")
        chunk = self._cache.find(history, offset)
        if chunk is None:
            self._raise_failure(history, offset)
            if not waits:
                return EMPTY_SLICE, []
            raise RemoteRead(history, offset)
        found = chunk.range_from(offset, max_bytes, min_one=min_one)
        if found is None:
            return EMPTY_SLICE, []
        self._read_ahead(history, chunk)
        return found, chunk.aborted_in(offset, found)

    def _raise_failure(self, history: PartitionHistory, offset: int) -> None:
        failed = self._failed.get(history)
        if failed is None:
            return
        at, until, error = failed
        if self._runtime.clock.monotonic() >= until:
            del self._failed[history]
        elif at == offset:
            raise HistoryUnavailable(str(error))

    def _read_ahead(self, history: PartitionHistory, chunk: Chunk) -> None:
        following = chunk.next_offset
        if (
            following < history.partition.log.log_start_offset
            and self._cache.find(history, following) is None
        ):
            self.bring(history, following, _nothing)

    def bring(self, history: PartitionHistory, offset: int, then: Then) -> None:
        """Call `then` on the loop when it was fetched, or could not be."""
        waiting = self._running.get((history, offset))
        if waiting is not None:
            waiting.append(then)
            return
        self._running[history, offset] = [then]
        self._metrics.fetch_requests += 1
        reader = self._reader(history)
        future = self._threads.run(partial(reader.chunk_at, offset))
        future.add_done_callback(partial(self._on_brought, history, offset))

    def _on_brought(self, history: PartitionHistory, offset: int, done: asyncio.Future[Chunk]) -> None:
        waiting = self._running.pop((history, offset))
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            chunk = done.result()
            self._metrics.fetched_bytes += chunk.size
            self._failed.pop(history, None)
            if history.partition.history is history:
                self._cache.add(history, chunk)
        else:
            self._metrics.fetch_errors += 1
            until = self._runtime.clock.monotonic() + FAILED_SECONDS
            unavailable = error if isinstance(error, HistoryUnavailable) else HistoryUnavailable(repr(error))
            self._failed[history] = offset, until, unavailable
            self._runtime.peer_log.warning(
                "history not read", _name(history), offset=offset, error=str(unavailable)
            )
        for each in waiting:
            try:
                each()
            except Exception as failure:  # those behind it wait too
                report(f"a fetch of {_name(history)}", failure)

    # --- look-ups ---

    async def first_at(self, history: PartitionHistory, timestamp: int) -> TimestampOffset | None:
        """The first record of this time or later that lies before the local log start."""
        start = self._start_of(history)
        if history.continued is None:
            return None
        until = history.partition.log.log_start_offset
        return await self._ask(self._reader(history).first_at, timestamp, start, until)

    async def newest(self, history: PartitionHistory) -> TimestampOffset | None:
        """The first record with the largest time, of those in the store."""
        start = self._start_of(history)
        return None if history.continued is None else await self._ask(self._reader(history).newest, start)

    async def beginning(self, history: PartitionHistory) -> Beginning:
        """For a follower that begins where the store ends."""
        if history.manifest is None:
            raise HistoryUnavailable(f"{_name(history)} has no manifest in the store")
        return await self._ask(self._reader(history).beginning)

    async def _ask(self, question: Callable[..., _Result], *arguments: int) -> _Result:
        return await self._threads.run(partial(question, *arguments))

    def _start_of(self, history: PartitionHistory) -> int:
        start = history.log_start_offset
        if start is None:
            raise HistoryUnavailable(f"{_name(history)}: the manifest in the store was not read yet")
        return start

    def _reader(self, history: PartitionHistory) -> HistoryReader:
        manifest = history.manifest
        assert manifest is not None
        timeout = self._runtime.config.headrace_tier_call_timeout_ms / 1000
        return HistoryReader(self._store, history.machine.place, manifest, self._cache, timeout)

    def forget(self, history: PartitionHistory) -> None:
        self._cache.forget(history)
        self._failed.pop(history, None)


def _name(history: PartitionHistory) -> str:
    return str(history.partition.topic_partition)


def _nothing() -> None:
    """Nobody waits for what is read ahead."""

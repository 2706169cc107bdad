"""`__cluster_metadata-0` as the journal of the local coordination: the commit is the append and its sync.

It is also this broker's copy, so that what is committed is held by the copy at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

from headrace.core.errors import CorruptLog, StorageError
from headrace.core.ports import Buffer, File
from headrace.protocol.batch import iterate

READ_BYTES = 1024 * 1024

Offload = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a blocking call so that the event loop goes on; a simulation runs it in place."""


class Slice(Protocol):
    @property
    def file(self) -> File: ...
    @property
    def position(self) -> int: ...
    @property
    def length(self) -> int: ...


class Flush(Protocol):
    """One sync: `run` blocks and belongs in a thread, the others on the loop."""

    def run(self) -> None: ...
    def done(self) -> None: ...
    def failed(self, error: StorageError) -> None: ...


class MetadataLog(Protocol):
    """As much of a PartitionLog as this needs."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def latest_epoch(self) -> int: ...
    def append_as_follower(self, batches: Buffer, *, now_ms: int = 0) -> int: ...
    def read(self, offset: int, max_bytes: int, *, limit: int, min_one: bool) -> Slice: ...
    def take_flush(self) -> Flush | None: ...


async def offload_to_thread(call: Callable[[], None]) -> None:
    await asyncio.to_thread(call)


class LogJournal:
    __slots__ = ("_log", "_now_ms", "_offload")

    def __init__(
        self, log: MetadataLog, *, now_ms: Callable[[], int], offload: Offload = offload_to_thread
    ) -> None:
        if log.log_start_offset != 0:
            raise CorruptLog(
                f"the metadata log begins at {log.log_start_offset}: its first records are missing"
            )
        self._log = log
        self._now_ms = now_ms
        self._offload = offload

    def end(self) -> int:
        return self._log.end_offset

    def latest_epoch(self) -> int:
        return self._log.latest_epoch

    def append(self, batch: bytes) -> None:
        self._log.append_as_follower(batch, now_ms=self._now_ms())

    async def sync(self) -> None:
        flush = self._log.take_flush()
        if flush is None:
            return
        try:
            await self._offload(flush.run)
        except StorageError as error:
            flush.failed(error)
            raise
        flush.done()

    def read(self, from_sequence: int) -> Iterator[bytes]:
        at, end = from_sequence, self._log.end_offset
        while at < end:
            found = self._log.read(at, READ_BYTES, limit=end, min_one=True)
            data = found.file.pread(found.length, found.position)
            before = at
            for position, header in iterate(data):
                if header.base_offset >= at:
                    yield data[position : position + header.size]
                    at = header.next_offset
            if at == before:
                raise CorruptLog(f"the metadata log has no batch at {at}, though it ends at {end}")

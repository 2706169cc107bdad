"""`__cluster_metadata-0` as the journal of the local coordination: the commit is the append and its sync.

It is also this broker's copy, so that what is committed is held by the copy at once.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

from headrace.core.errors import CorruptLog, DiskFull, StorageError
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import check, iterate

METADATA_LOG_CONFIGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.ms": str((1 << 63) - 1),
    "segment.jitter.ms": "0",
    "preallocate": "false",
}
"""Nothing in the metadata log is removed by age or size, whatever the broker's defaults are."""

READ_BYTES = 1024 * 1024
BUSY_FLUSH_S = 0.001

Offload = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a blocking call so that the event loop goes on; a simulation runs it in place."""


async def offload_to_thread(call: Callable[[], None]) -> None:
    await asyncio.to_thread(call)


class LogJournal:
    __slots__ = ("_log", "_now_ms", "_offload")

    def __init__(
        self, log: PartitionLog, *, now_ms: Callable[[], int], offload: Offload = offload_to_thread
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
        """Raises DiskFull if there is no room: nothing was appended."""
        self._log.append_as_follower(batch, now_ms=self._now_ms())

    def hold(self, batch: bytes) -> None:
        """Append what is committed elsewhere already."""
        try:
            self.append(batch)
        except DiskFull as error:
            # What was decided has to be held. A broker that cannot hold it is of no use until there is room.
            raise self._log.directory.fail(OSError(errno.ENOSPC, str(error)), "write the metadata") from error

    async def sync(self) -> None:
        while (flush := self._log.take_flush()) is None:
            if self._log.closed:
                raise StorageError("the metadata log is closed")
            # A flush that began before our append is under way; it does not cover what we appended.
            await asyncio.sleep(BUSY_FLUSH_S)
        try:
            await self._offload(flush.run)
        except StorageError:
            flush.failed()
            raise
        flush.done()

    def read(self, from_sequence: int) -> Iterator[bytes]:
        """Raises CorruptBatch, or CorruptLog, where a batch is not what was written."""
        at, end = from_sequence, self._log.end_offset
        while at < end:
            found = self._log.read(at, READ_BYTES, limit=end, min_one=True)
            data = found.file.pread(found.length, found.position)
            before = at
            for position, header in iterate(data):
                if header.base_offset >= at:
                    check(data, position)  # a clean start reads no batch: a flipped bit would be believed
                    yield data[position : position + header.size]
                    at = header.next_offset
            if at == before:
                raise CorruptLog(f"the metadata log has no batch at {at}, though it ends at {end}")

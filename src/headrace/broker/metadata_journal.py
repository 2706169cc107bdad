"""`__cluster_metadata-0` as the journal of the local coordination: an ordinary log, synced at each commit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.broker.flusher import Flusher
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.core.ports import Clock
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import iterate

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
READ_BYTES: Final = 1024 * 1024


class MetadataJournal:
    def __init__(self, log: PartitionLog, flusher: Flusher, clock: Clock) -> None:
        self._log = log
        self._flusher = flusher
        self._clock = clock

    def end(self) -> int:
        return self._log.end_offset

    def latest_epoch(self) -> int:
        return self._log.latest_epoch

    def append(self, batch: bytes) -> None:
        self._log.append_as_follower(batch, now_ms=self._clock.wall_ms())

    async def sync(self) -> None:
        durable = self._flusher.loop.create_future()

        def on_durable(error: HeadraceError | None) -> None:
            if durable.done():
                return
            if error is None:
                durable.set_result(None)
            else:
                durable.set_exception(error)

        self._flusher.flush(self._log, on_durable)
        await durable

    def read(self, from_sequence: int) -> Iterable[bytes]:
        log = self._log
        offset = from_sequence
        while offset < log.end_offset:
            part = log.read(offset, READ_BYTES, limit=log.end_offset, min_one=True)
            data = part.file.pread(part.length, part.position)
            before = offset
            for at, header in iterate(data):
                if header.base_offset >= offset:
                    yield data[at : at + header.size]
                    offset = header.next_offset
            if offset == before:
                return

"""A segment that the cleaner writes: the files of a segment, each with `.cleaned` behind its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.core.ports import Buffer, Disk
from headrace.log import files
from headrace.log.offset_index import OffsetIndex
from headrace.log.time_index import NO_TIMESTAMP, TimeIndex
from headrace.log.transaction_index import AbortedTransaction, TransactionIndex
from headrace.protocol.batch import BatchHeader

BUFFERED_BYTES: Final = 1 << 20


def cleaned_path(folder: str, base_offset: int, suffix: str) -> str:
    return f"{folder}/{files.numbered(base_offset)}{suffix}{files.CLEANED}"


class SegmentWriter:
    """Batches in, in ascending order; after `finish` everything is on the disk, its name included."""

    __slots__ = (
        "_buffer",
        "_buffered",
        "_disk",
        "_file",
        "_folder",
        "_index",
        "_interval",
        "_largest",
        "_largest_at",
        "_since_entry",
        "_times",
        "_transactions",
        "size",
    )

    def __init__(self, disk: Disk, folder: str, base_offset: int, index_interval_bytes: int) -> None:
        self._disk = disk
        self._folder = folder
        self._interval = index_interval_bytes
        self._file = disk.open(cleaned_path(folder, base_offset, files.LOG), create=True)
        self._file.truncate(0)  # an earlier attempt may have left one
        self._index = OffsetIndex(disk, cleaned_path(folder, base_offset, files.INDEX), base_offset)
        self._index.reset()
        self._times = TimeIndex(disk, cleaned_path(folder, base_offset, files.TIME_INDEX), base_offset)
        self._times.reset()
        self._times.last_timestamp = NO_TIMESTAMP
        self._transactions = TransactionIndex(disk, cleaned_path(folder, base_offset, files.TXN_INDEX))
        self._transactions.reset()
        self._buffer: list[Buffer] = []
        self._buffered = 0
        self._since_entry = 0
        self._largest, self._largest_at = NO_TIMESTAMP, base_offset
        self.size = 0

    @property
    def index_entries(self) -> int:
        return max(self._index.count, self._times.count)

    def add(self, header: BatchHeader, batch: Buffer) -> None:
        """`header` is that of `batch`."""
        size, last_offset = len(batch), header.last_offset
        if header.max_timestamp > self._largest:
            self._largest, self._largest_at = header.max_timestamp, last_offset
        if self._since_entry > self._interval:
            self._index.append(last_offset, self.size)
            self._times.maybe_append(self._largest, self._largest_at)
            self._since_entry = 0
        self._since_entry += size
        self.size += size
        self._buffer.append(batch)
        self._buffered += size
        if self._buffered >= BUFFERED_BYTES:
            self._write()

    def _write(self) -> None:
        if self._buffered:
            self._file.pwrite(b"".join(self._buffer), self.size - self._buffered)
            self._buffer.clear()
            self._buffered = 0

    def finish(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._write()
        for entry in aborted:
            self._transactions.append(entry)
        if self._largest >= 0:
            self._times.maybe_append(self._largest, self._largest_at)
        self._index.flush()
        self._times.flush()
        self._file.sync()
        self._index.sync()
        self._times.sync()
        files.sync_path(self._disk, self._transactions.path)
        self._disk.sync_dir(self._folder)
        self._file.close()

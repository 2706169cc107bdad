"""What the offset index and the time index have in common: fixed-size, ascending entries in one file.

New entries wait in memory and are written in chunks. The file is opened for a chunk or a search and closed
again: an index costs no descriptor, and no memory but its unwritten tail. A broken or missing index is
never repaired here; recovery rebuilds it from the log.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final

from headrace.core.ports import Disk, File

CHUNK_ENTRIES: Final = 256
"""Unwritten entries that are kept at most; a crash loses no more, and recovery rebuilds them."""
_BLOCK_ENTRIES: Final = 512
"""A search ends by reading this many entries at once rather than by more single reads."""


class IndexFile:
    """Invariant: entries are strictly ascending in their key; `count` counts written and unwritten ones."""

    __slots__ = ("_disk", "_tail", "_written", "base_offset", "path")

    ENTRY: ClassVar[Struct]

    def __init__(self, disk: Disk, path: str, base_offset: int, written: int = 0) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self._written = written
        self._tail = bytearray()

    @property
    def count(self) -> int:
        return self._written + len(self._tail) // self.ENTRY.size

    def _add(self, raw: bytes) -> None:
        self._tail += raw
        if len(self._tail) >= CHUNK_ENTRIES * self.ENTRY.size:
            self.flush()

    def flush(self) -> None:
        """Write what waits. Creates the file, empty if need be."""
        file = self._disk.open(self.path, create=True)
        try:
            if self._tail:
                file.pwrite(self._tail, self._written * self.ENTRY.size)
                self._written += len(self._tail) // self.ENTRY.size
                self._tail = bytearray()
        finally:
            file.close()

    def sync(self) -> None:
        file = self._disk.open(self.path, create=True)
        try:
            file.sync()
        finally:
            file.close()

    def entry(self, index: int) -> tuple[int, int]:
        """The raw numbers of one entry."""
        if index >= self._written:
            first, second = self.ENTRY.unpack_from(self._tail, (index - self._written) * self.ENTRY.size)
            return first, second
        file = self._disk.open(self.path)
        try:
            return self._read(file, index)
        finally:
            file.close()

    def _read(self, file: File, index: int) -> tuple[int, int]:
        size = self.ENTRY.size
        first, second = self.ENTRY.unpack(file.pread(size, index * size))
        return first, second

    def search(self, target: int, field: int = 0) -> tuple[int, int, int]:
        """(place, first, second) of the last entry whose first number (or, with `field` 1, its second, where
        that ascends too) is at most `target`; place -1: none."""
        if self._tail and self.ENTRY.unpack_from(self._tail, 0)[field] <= target:
            return self._search_block(self._tail, self._written, target, field)
        if not self._written:
            return -1, 0, 0
        size = self.ENTRY.size
        low, high = 0, self._written
        file = self._disk.open(self.path)
        try:
            while high - low > _BLOCK_ENTRIES:
                middle = (low + high) // 2
                if self._read(file, middle)[field] <= target:
                    low = middle
                else:
                    high = middle
            block = file.pread((high - low) * size, low * size)
        finally:
            file.close()
        return self._search_block(block, low, target, field)

    def _search_block(
        self, block: bytes | bytearray, first_place: int, target: int, field: int
    ) -> tuple[int, int, int]:
        unpack, size = self.ENTRY.unpack_from, self.ENTRY.size
        low, high = 0, len(block) // size
        while low < high:
            middle = (low + high) // 2
            if unpack(block, middle * size)[field] <= target:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return -1, 0, 0
        first, second = unpack(block, (low - 1) * size)
        return first_place + low - 1, first, second

    def keep(self, count: int) -> None:
        """Drop every entry from place `count` on."""
        if count >= self._written:
            del self._tail[(count - self._written) * self.ENTRY.size :]
        else:
            self._cut(count)

    def reset(self) -> None:
        """Drop every entry, also those of a file that was never looked at."""
        self._cut(0)

    def _cut(self, count: int) -> None:
        self._tail = bytearray()
        self._written = count
        file = self._disk.open(self.path, create=True)
        try:
            file.truncate(count * self.ENTRY.size)
        finally:
            file.close()

    def assume(self, written: int) -> None:
        """The file is there, with this many entries."""
        self._written = written
        self._tail = bytearray()

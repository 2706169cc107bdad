"""What the offset index and the time index have in common: fixed-size, ascending entries in one file.

New entries wait in memory and are written in chunks. The file is opened for a chunk or a block and closed
again: an index costs no descriptor, and no memory but its unwritten tail and the blocks that were asked for
lately (`index_blocks.py`). A broken or missing index is never repaired here; recovery rebuilds it from the
log.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final

from headrace.core.ports import Disk, File
from headrace.log.descriptors import is_lack_of_descriptors
from headrace.log.full_disk import is_full_disk
from headrace.log.index_blocks import IndexBlocks
from headrace.log.residency import NotResident

CHUNK_ENTRIES: Final = 256
"""Unwritten entries that are kept at most; a crash loses no more, and recovery rebuilds them."""
_BLOCK_ENTRIES: Final = 512
"""What is read at once, and kept."""


class WrongIndex(Exception):
    """An index does not agree with the log: it is to be rebuilt, nothing else is wrong."""


class IndexFile:
    """Invariant: entries are strictly ascending in their key; `count` counts written and unwritten ones."""

    __slots__ = ("_blocks", "_disk", "_state", "_tail", "_written", "base_offset", "path")

    ENTRY: ClassVar[Struct]

    def __init__(
        self, disk: Disk, path: str, base_offset: int, written: int = 0, blocks: IndexBlocks | None = None
    ) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self._written = written
        self._tail = bytearray()
        self._blocks = blocks
        self._state = 0
        """Moves when entries that were written may have changed: blocks from before are not looked at."""

    @property
    def count(self) -> int:
        return self._written + len(self._tail) // self.ENTRY.size

    def _add(self, raw: bytes) -> None:
        self._tail += raw
        if len(self._tail) >= CHUNK_ENTRIES * self.ENTRY.size:
            try:
                self.flush()
            except OSError as error:
                # The batch that it is about is written, and cannot be refused any more. What waits is made
                # again from the batches, if it comes to that: it waits until there is room.
                if not is_full_disk(error) and not is_lack_of_descriptors(error):
                    raise

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

    @property
    def written(self) -> int:
        """Entries in the file."""
        return self._written

    def entry(self, index: int, *, wait: bool = True) -> tuple[int, int]:
        """The raw numbers of one entry. Without `wait`, NotResident where a disk would have to be asked."""
        if index >= self._written:
            first, second = self.ENTRY.unpack_from(self._tail, (index - self._written) * self.ENTRY.size)
            return first, second
        if not wait:
            number = index // _BLOCK_ENTRIES
            block = self._block(number, self._written, wait=False)
            at = (index - number * _BLOCK_ENTRIES) * self.ENTRY.size
            first, second = self.ENTRY.unpack_from(block, at)
            return first, second
        file = self._open()
        try:
            return self._read(file, index)
        finally:
            file.close()

    def _open(self) -> File:
        try:
            return self._disk.open(self.path)
        except FileNotFoundError:
            raise WrongIndex(f"{self.path} is missing") from None

    def _read(self, file: File, index: int) -> tuple[int, int]:
        size = self.ENTRY.size
        raw = file.pread(size, index * size)
        if len(raw) < size:
            raise WrongIndex(f"{self.path} was cut: it has no entry {index}")
        first, second = self.ENTRY.unpack(raw)
        return first, second

    def search(self, target: int, field: int = 0, *, wait: bool = True) -> tuple[int, int, int]:
        """(place, first, second) of the last entry whose first number (or, with `field` 1, its second, where
        that ascends too) is at most `target`; place -1: none."""
        if self._tail and self.ENTRY.unpack_from(self._tail, 0)[field] <= target:
            return self._search_block(self._tail, self._written, target, field)
        return self.search_written(target, self._written, field, wait=wait)

    def search_written(
        self, target: int, written: int, field: int = 0, *, wait: bool = True
    ) -> tuple[int, int, int]:
        """The same among the first `written` entries, all in the file. A thread may do this."""
        if not written:
            return -1, 0, 0
        unpack = self.ENTRY.unpack_from
        low, high = 0, (written - 1) // _BLOCK_ENTRIES
        while low < high:
            middle = (low + high + 1) // 2
            if unpack(self._block(middle, written, wait=wait), 0)[field] <= target:
                low = middle
            else:
                high = middle - 1
        return self._search_block(self._block(low, written, wait=wait), low * _BLOCK_ENTRIES, target, field)

    def block_of(self, place: int) -> bytes:
        """The block with an entry that lies in the file. NotResident if it is not in memory."""
        return self._block(place // _BLOCK_ENTRIES, self._written, wait=False)

    def _block(self, number: int, written: int, *, wait: bool) -> bytes:
        size = self.ENTRY.size
        length = min(_BLOCK_ENTRIES, written - number * _BLOCK_ENTRIES) * size
        key = (self, self._state, number)
        if self._blocks is not None:
            block = self._blocks.get(key)
            if block is not None and len(block) >= length:
                return block
        if not wait:
            raise NotResident
        file = self._open()
        try:
            block = file.pread(length, number * _BLOCK_ENTRIES * size)
        finally:
            file.close()
        if len(block) < length:
            raise WrongIndex(f"{self.path} ends before its last entry")
        if self._blocks is not None:
            self._blocks.put(key, block)
        return block

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
        self._state += 1
        self._tail = bytearray()
        self._written = count
        file = self._disk.open(self.path, create=True)
        try:
            file.truncate(count * self.ENTRY.size)
        finally:
            file.close()

    def assume(self, written: int) -> None:
        """The file is there, with this many entries."""
        self._state += 1
        self._written = written
        self._tail = bytearray()

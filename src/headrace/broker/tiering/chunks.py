"""Pieces of history that were fetched from the store, verified, and lie in files of their own.

An answer is a range of such a file, and goes the way of every other range. The files have no names, so that
nothing of them is left after a crash, and one that is dropped stays until the last answer from it is sent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final

from headrace.core.ports import Buffer, Disk, File, FileRange
from headrace.protocol.batch import HEADER_SIZE, BatchHeader, read_header

if TYPE_CHECKING:
    from headrace.tier.index_object import Indexes

_NAME: Final = "tier-cache.tmp"


class Chunk:
    """Whole batches of one segment, one after the other."""

    __slots__ = ("_bases", "_lasts", "_positions", "file", "indexes", "size")

    def __init__(
        self,
        file: File,
        size: int,
        bases: Sequence[int],
        lasts: Sequence[int],
        positions: Sequence[int],
        indexes: Indexes,
    ) -> None:
        self.file = file
        self.size = size
        self._bases = bases
        self._lasts = lasts
        self._positions = positions
        self.indexes = indexes
        """Of its segment."""

    @property
    def first_offset(self) -> int:
        return self._bases[0]

    @property
    def next_offset(self) -> int:
        return self._lasts[-1] + 1

    def range_from(self, offset: int, max_bytes: int, *, min_one: bool) -> FileRange | None:
        """From the batch that reaches `offset` on. The last one may be cut; the first is whole, or None."""
        place = bisect_left(self._lasts, offset)
        position = self._positions[place]
        ends = self._positions[place + 1] if place + 1 < len(self._positions) else self.size
        if ends - position > max_bytes:
            if not min_one:
                return None
            max_bytes = ends - position
        return FileRange(self.file, position, min(max_bytes, self.size - position))

    def headers(self) -> Iterator[tuple[int, BatchHeader]]:
        """For a thread: they are read from the file."""
        for position in self._positions:
            yield position, read_header(self.file.pread(HEADER_SIZE, position))

    def aborted_in(self, offset: int, records: FileRange) -> list[tuple[int, int]]:
        end = bisect_right(self._positions, records.position + records.length - 1)
        return self.indexes.aborted_within(offset, self._lasts[end - 1] + 1)


class ChunkCache:
    """The most recently read, up to a number of bytes. Belongs to the loop, but for `store`."""

    def __init__(self, disk: Disk, directory: str, limit_bytes: int) -> None:
        self._disk = disk
        self._directory = directory
        self._limit = limit_bytes
        self._chunks: OrderedDict[tuple[Hashable, int], Chunk] = OrderedDict()
        self._of_owner: dict[Hashable, list[int]] = {}
        """Where the chunks of one partition begin, ascending."""
        self._naming = Lock()
        self.held_bytes = 0

    def store(self, data: Buffer) -> File:
        """A new file with these bytes. For a thread."""
        path = f"{self._directory}/{_NAME}"
        with self._naming:
            file = self._disk.open(path, create=True)
            self._disk.remove(path)
        file.truncate(0)
        file.pwrite(data, 0)
        return file

    def find(self, owner: Hashable, offset: int) -> Chunk | None:
        starts = self._of_owner.get(owner)
        if starts is None:
            return None
        place = bisect_right(starts, offset) - 1
        if place < 0:
            return None
        key = owner, starts[place]
        chunk = self._chunks[key]
        if offset >= chunk.next_offset:
            return None
        self._chunks.move_to_end(key)
        return chunk

    def add(self, owner: Hashable, chunk: Chunk) -> None:
        key = owner, chunk.first_offset
        if key in self._chunks:
            self._drop(key)
        self._chunks[key] = chunk
        starts = self._of_owner.setdefault(owner, [])
        starts.insert(bisect_left(starts, chunk.first_offset), chunk.first_offset)
        self.held_bytes += chunk.size
        while self.held_bytes > self._limit and len(self._chunks) > 1:
            self._drop(next(iter(self._chunks)))

    def forget(self, owner: Hashable) -> None:
        for start in list(self._of_owner.get(owner, ())):
            self._drop((owner, start))

    def _drop(self, key: tuple[Hashable, int]) -> None:
        chunk = self._chunks.pop(key)
        owner, start = key
        starts = self._of_owner[owner]
        starts.remove(start)
        if not starts:
            del self._of_owner[owner]
        self.held_bytes -= chunk.size

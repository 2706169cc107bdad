"""The sparse offset index: `.index`, 8 bytes an entry.

An entry is (offset - base offset, position): the last offset of a batch, and where in the `.log` the batch
begins. There is one about every `index.interval.bytes`.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from struct import Struct
from typing import ClassVar

from headrace.core.ports import Disk
from headrace.log.index_blocks import IndexBlocks
from headrace.log.index_file import IndexFile
from headrace.log.residency import NotResident


class OffsetIndex(IndexFile):
    __slots__ = ("_near",)

    ENTRY: ClassVar[Struct] = Struct(">ii")

    def __init__(
        self, disk: Disk, path: str, base_offset: int, written: int = 0, blocks: IndexBlocks | None = None
    ) -> None:
        super().__init__(disk, path, base_offset, written, blocks)
        self._near: tuple[int, array[int], array[int]] | None = None
        """State of the file, offsets and positions of the block that was last searched by position: a reader
        that comes in order is there again with its next range."""

    def append(self, offset: int, position: int) -> None:
        self._add(self.ENTRY.pack(offset - self.base_offset, position))

    def lookup(self, offset: int, *, wait: bool = True) -> tuple[int, int | None]:
        """Where to begin a scan for the batch that holds `offset`, and the last offset of the batch there."""
        place, relative, position = self.search(offset - self.base_offset, wait=wait)
        return (0, None) if place < 0 else (position, self.base_offset + relative)

    def first_from(self, position: int, *, wait: bool = True) -> tuple[int, int] | None:
        """(last offset, position) of the first known batch that begins at `position` or behind; None if there
        is none."""
        place = self.search(position - 1, field=1, wait=wait)[0] + 1
        if place >= self.count:
            return None
        relative, found = self.entry(place, wait=wait)
        return self.base_offset + relative, found

    def last_before(self, position: int) -> tuple[int, int] | None:
        """(last offset, position) of the last known batch that begins at or before `position`. Waits for no
        disk: None if that would be needed, or there is none."""
        near = self._near
        if near is not None and near[0] == self._state and near[2][0] <= position < near[2][-1]:
            at = bisect_right(near[2], position) - 1
            return self.base_offset + near[1][at], near[2][at]
        try:
            place, relative, found = self.search(position, field=1, wait=False)
            if 0 <= place < self._written:
                numbers = unpack_block(self.block_of(place))
                self._near = (self._state, numbers[0], numbers[1])
        except NotResident:
            return None
        return None if place < 0 else (self.base_offset + relative, found)

    def forget_block(self) -> None:
        self._near = None

    def last(self) -> tuple[int, int]:
        """(offset, position) of the last entry, or the beginning of the segment."""
        if not self.count:
            return self.base_offset, 0
        relative, position = self.entry(self.count - 1)
        return self.base_offset + relative, position

    def is_sane(self, log_size: int) -> bool:
        """Whether the last entry can be true of a log of `log_size` bytes."""
        if not self.count:
            return True
        relative, position = self.entry(self.count - 1)
        return relative >= 0 and 0 <= position < log_size

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of batches that reach `offset` or beyond."""
        self.keep(self.search(offset - self.base_offset - 1)[0] + 1)


def unpack_block(block: bytes) -> tuple[array[int], array[int]]:
    """The offsets and the positions of a block."""
    numbers = array("i", block)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers[0::2], numbers[1::2]

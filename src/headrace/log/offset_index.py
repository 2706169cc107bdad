"""The sparse offset index: `.index`, 8 bytes an entry.

An entry is (offset - base offset, position): the last offset of a batch, and where in the `.log` the batch
begins. There is one about every `index.interval.bytes`.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from headrace.log.index_file import IndexFile


class OffsetIndex(IndexFile):
    __slots__ = ()

    ENTRY: ClassVar[Struct] = Struct(">ii")

    def append(self, offset: int, position: int) -> None:
        self._add(self.ENTRY.pack(offset - self.base_offset, position))

    def lookup(self, offset: int) -> tuple[int, int | None]:
        """Where to begin a scan for the batch that holds `offset`, and the last offset of the batch there."""
        place, relative, position = self.search(offset - self.base_offset)
        return (0, None) if place < 0 else (position, self.base_offset + relative)

    def offset_from(self, position: int) -> int | None:
        """The offset of the first entry whose batch begins at `position` or behind; None if there is none."""
        place = self.search(position - 1, field=1)[0] + 1
        return self.base_offset + self.entry(place)[0] if place < self.count else None

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

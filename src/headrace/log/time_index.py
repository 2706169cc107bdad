"""The time index: `.timeindex`, 12 bytes an entry.

An entry is (timestamp, offset - base offset): the largest timestamp that the segment had seen by then, and
the last offset of the batch that brought it. Timestamps ascend strictly, so an entry is only written when
the largest timestamp has grown.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar

from headrace.log.index_file import IndexFile

NO_TIMESTAMP = -1


class TimeIndex(IndexFile):
    __slots__ = ("last_timestamp",)

    ENTRY: ClassVar[Struct] = Struct(">qi")

    last_timestamp: int
    """Of the last entry; NO_TIMESTAMP without one."""

    def maybe_append(self, timestamp: int, offset: int) -> None:
        if timestamp > self.last_timestamp:
            self._add(self.ENTRY.pack(timestamp, offset - self.base_offset))
            self.last_timestamp = timestamp

    def lookup(self, timestamp: int) -> tuple[int, int, int] | None:
        """(timestamp, offset, offset of the entry before) of the last entry that is not younger; None if
        there is none."""
        place, found, relative = self.search(timestamp)
        if place < 0:
            return None
        return found, self.base_offset + relative, self.offset_before(place)

    def offset_before(self, place: int) -> int:
        """The offset of the entry before that at `place`, or where the segment begins."""
        return self.base_offset + self.entry(place - 1)[1] if place > 0 else self.base_offset

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry, or (NO_TIMESTAMP, base offset)."""
        if not self.count:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self.entry(self.count - 1)
        return timestamp, self.base_offset + relative

    def load_last(self) -> None:
        self.last_timestamp = self.last()[0]

    def is_sane(self) -> bool:
        if not self.count:
            return True
        timestamp, relative = self.entry(self.count - 1)
        return relative >= 0 and timestamp >= self.entry(0)[0] >= 0

    def truncate_to(self, offset: int) -> None:
        """Drop the entries that speak of `offset` or beyond. Offsets ascend with the timestamps."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.base_offset + self.entry(middle)[1] < offset:
                low = middle + 1
            else:
                high = middle
        self.keep(low)
        self.load_last()

"""Where a segment is whole again behind damage."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.core.errors import CorruptBatch
from headrace.log.index_file import WrongIndex
from headrace.log.offset_index import OffsetIndex
from headrace.log.scan import Readable
from headrace.protocol.batch import HEADER_SIZE, MAGIC, BatchHeader, check, read_header

_SEARCHED_BYTES: Final = 64 * 1024
_MAGIC_AT: Final = 16
_CANDIDATES: Final = 4096
"""Index entries behind damage that are tried until a whole batch is found."""


class Place(NamedTuple):
    """What a batch behind damage may say of its offsets. No checksum covers them: a batch whose base offset
    was zeroed too is whole by its checksum, and says that it has offset 0."""

    after: int
    """It begins behind this one."""
    highest: int

    def holds(self, header: BatchHeader) -> bool:
        return self.after < header.base_offset <= header.last_offset <= self.highest


def next_whole(
    file: Readable, position: int, size: int, index: OffsetIndex, written: int, place: Place
) -> int:
    """Where the next batch is that is whole and may stand there: behind the damaged one, close behind, or
    where the index knows of one; `size` if there is none. Always behind `position`."""
    raw = file.pread(HEADER_SIZE, position)
    length = read_header(raw).size if len(raw) == HEADER_SIZE else 0
    if length >= HEADER_SIZE and is_whole(file, position + length, size, place):
        return position + length
    near = min(position + _SEARCHED_BYTES, size - HEADER_SIZE)
    window = file.pread(max(near - position, 0) + HEADER_SIZE, position)
    at = window.find(MAGIC, _MAGIC_AT + 1)
    while at >= 0:
        if is_whole(file, position + at - _MAGIC_AT, size, place):
            return position + at - _MAGIC_AT
        at = window.find(MAGIC, at + 1)
    return _next_indexed(file, position, size, index, written, place)


def _next_indexed(
    file: Readable, position: int, size: int, index: OffsetIndex, written: int, place: Place
) -> int:
    try:
        first = index.search_written(position, written, field=1)[0] + 1
        for candidate in range(first, min(written, first + _CANDIDATES)):
            at = index.entry(candidate)[1]
            if position < at < size and is_whole(file, at, size, place):
                return at
    except WrongIndex:
        pass
    return size


def is_whole(file: Readable, position: int, end: int, place: Place | None = None) -> bool:
    if position == end:
        return True
    raw = file.pread(HEADER_SIZE, position)
    if (
        len(raw) < HEADER_SIZE
        or raw[_MAGIC_AT] != MAGIC
        or not HEADER_SIZE <= read_header(raw).size <= end - position
    ):
        return False
    try:
        header = check(file.pread(read_header(raw).size, position))
    except CorruptBatch:
        return False
    return place is None or place.holds(header)

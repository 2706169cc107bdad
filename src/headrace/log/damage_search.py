"""Where a segment is whole again behind damage."""

from __future__ import annotations

from typing import Final

from headrace.core.errors import CorruptBatch
from headrace.log.index_file import WrongIndex
from headrace.log.offset_index import OffsetIndex
from headrace.log.scan import Readable
from headrace.protocol.batch import HEADER_SIZE, MAGIC, check, read_header

_SEARCHED_BYTES: Final = 64 * 1024
_MAGIC_AT: Final = 16
_CANDIDATES: Final = 4096
"""Index entries behind damage that are tried until a whole batch is found."""


def next_whole(file: Readable, position: int, size: int, index: OffsetIndex, written: int) -> int:
    """Where the next batch is that is whole: behind the damaged one, close behind, or where the index knows
    of one; `size` if there is none. Always behind `position`."""
    raw = file.pread(HEADER_SIZE, position)
    length = read_header(raw).size if len(raw) == HEADER_SIZE else 0
    if length >= HEADER_SIZE and is_whole(file, position + length, size):
        return position + length
    near = min(position + _SEARCHED_BYTES, size - HEADER_SIZE)
    window = file.pread(max(near - position, 0) + HEADER_SIZE, position)
    at = window.find(MAGIC, _MAGIC_AT + 1)
    while at >= 0:
        if is_whole(file, position + at - _MAGIC_AT, size):
            return position + at - _MAGIC_AT
        at = window.find(MAGIC, at + 1)
    return _next_indexed(file, position, size, index, written)


def _next_indexed(file: Readable, position: int, size: int, index: OffsetIndex, written: int) -> int:
    try:
        place = index.search_written(position, written, field=1)[0] + 1
        for candidate in range(place, min(written, place + _CANDIDATES)):
            at = index.entry(candidate)[1]
            if position < at < size and is_whole(file, at, size):
                return at
    except WrongIndex:
        pass
    return size


def is_whole(file: Readable, position: int, end: int) -> bool:
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
        check(file.pread(read_header(raw).size, position))
    except CorruptBatch:
        return False
    return True

"""Walking over the batches of a segment file.

Two ways: by headers alone, for bytes that were checked when they were stored; and with every checksum, for
recovery and for bytes that another program wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from headrace.core.errors import CorruptBatch, CorruptLog
from headrace.core.ports import File
from headrace.protocol.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MIN_BATCH_LENGTH,
    BatchHeader,
    check,
    read_header,
)

_STEP: Final = Struct(">qi11xi")
"""Base offset, batch length, last offset delta: enough to walk."""
_WINDOW_BYTES: Final = 16 * 1024
_CHUNK_BYTES: Final = 1024 * 1024


class FoundBatch(NamedTuple):
    position: int
    base_offset: int
    last_offset: int
    size: int


def find_batch(file: File, position: int, end: int, offset: int) -> FoundBatch | None:
    """The first batch at or after `position` that reaches `offset`; None when there is none before `end`."""
    window, window_at = b"", position
    while end - position >= HEADER_SIZE:
        at = position - window_at
        if at < 0 or at + _STEP.size > len(window):
            window, window_at, at = file.pread(min(_WINDOW_BYTES, end - position), position), position, 0
        if len(window) - at < _STEP.size:
            raise CorruptLog(f"the segment ends at {window_at + len(window)}, {end} bytes were written")
        base, length, delta = _STEP.unpack_from(window, at)
        if length < MIN_BATCH_LENGTH:
            raise CorruptLog(f"batch length {length} at position {position}")
        if base + delta >= offset:
            return FoundBatch(position, base, base + delta, length + LOG_OVERHEAD)
        position += length + LOG_OVERHEAD
    return None


def headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch, unchecked."""
    window, window_at = b"", position
    while end - position >= HEADER_SIZE:
        at = position - window_at
        if at + HEADER_SIZE > len(window):
            window, window_at, at = file.pread(min(_WINDOW_BYTES, end - position), position), position, 0
            if len(window) < HEADER_SIZE:
                return
        header = read_header(window, at)
        if header[1] < MIN_BATCH_LENGTH:
            raise CorruptLog(f"batch length {header[1]} at position {position}")
        yield position, header
        position += header[1] + LOG_OVERHEAD


class Fault(NamedTuple):
    """Why a checked walk stopped before the end."""

    position: int
    reason: str


class CheckedWalk:
    """Every batch of a file from `position` on, each with its checksum verified and offsets ascending.

    The walk ends at the first byte that cannot be right; `fault` then says where and why.
    """

    __slots__ = ("_end", "_file", "fault", "next_offset", "position")

    def __init__(self, file: File, position: int, end: int, next_offset: int) -> None:
        self._file = file
        self._end = end
        self.position = position
        """Everything before it has been found whole."""
        self.next_offset = next_offset
        """The smallest base offset that the next batch may have; after the walk, the end offset."""
        self.fault: Fault | None = None

    def __iter__(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        data, data_at = memoryview(b""), self.position
        while self.position < self._end:
            at = self.position - data_at
            need = self._needed(data, at)
            if at + need > len(data):
                data_at, at = self.position, 0
                data = memoryview(
                    self._file.pread(min(max(_CHUNK_BYTES, need), self._end - data_at), data_at)
                )
                need = self._needed(data, 0)
                if need > len(data) and need <= self._end - data_at:
                    data = memoryview(self._file.pread(need, data_at))
            try:
                header = check(data, at)
            except CorruptBatch as error:
                self.fault = Fault(self.position, str(error))
                return
            if header.base_offset < self.next_offset:
                self.fault = Fault(
                    self.position, f"offset {header.base_offset} where {self.next_offset} is the least"
                )
                return
            yield self.position, header, data[at : at + header.size]
            self.position += header.size
            self.next_offset = header.next_offset

    def _needed(self, data: memoryview, at: int) -> int:
        """Bytes from `at` on that the next batch takes, as far as can be told."""
        if len(data) - at < LOG_OVERHEAD:
            return HEADER_SIZE
        return max(HEADER_SIZE, int.from_bytes(data[at + 8 : at + 12], "big", signed=True) + LOG_OVERHEAD)


def verify_range(file: File, position: int, length: int) -> None:
    """Raise CorruptLog unless the range holds whole, intact batches; a cut last batch is not judged.

    For a reader that brings a cold range from the disk: nothing corrupt is served.
    """
    walk = CheckedWalk(file, position, position + length, 0)
    for _ in walk:
        pass
    if walk.fault is not None:
        rest = file.pread(min(HEADER_SIZE, position + length - walk.position), walk.position)
        if len(rest) == HEADER_SIZE and read_header(rest).size <= position + length - walk.position:
            raise CorruptLog(f"position {walk.fault.position}: {walk.fault.reason}")

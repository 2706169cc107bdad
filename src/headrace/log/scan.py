"""Walking over the batches of a segment file.

Two ways: by headers alone, for bytes that were checked when they were stored; and with every checksum, for
recovery and for bytes that another program wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from struct import Struct
from typing import Final, NamedTuple, Protocol

from headrace.core.errors import CorruptBatch, CorruptLog
from headrace.core.ports import Buffer, File
from headrace.log.index_file import WrongIndex
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
_DOES_NOT_FIT: Final = "offset or leader epoch does not fit the batches around it"


class Readable(Protocol):
    def pread(self, length: int, position: int) -> bytes: ...


class FoundBatch(NamedTuple):
    position: int
    base_offset: int
    last_offset: int
    size: int


def find_batch(
    file: Readable, position: int, end: int, offset: int, least: int, expected: int | None = None
) -> FoundBatch | None:
    """The first batch at or after `position` that reaches `offset`; None when there is none before `end`.

    `least` is the lowest offset that a batch there may have: a lower one, or one that goes back, is damage
    that no checksum covers. `expected` is the last offset of the batch at `position`, by the index;
    WrongIndex if it is not.
    """
    pread = file.pread
    if expected is not None and not is_batch(pread, position, end, expected):
        raise WrongIndex
    window, window_at = b"", position
    while end - position >= HEADER_SIZE:
        at = position - window_at
        if at < 0 or at + _STEP.size > len(window):
            window, window_at, at = pread(min(_WINDOW_BYTES, end - position), position), position, 0
        if len(window) - at < _STEP.size:
            raise CorruptLog(f"the segment ends at {window_at + len(window)}, {end} bytes were written")
        base, length, delta = _STEP.unpack_from(window, at)
        if not MIN_BATCH_LENGTH <= length <= end - position - LOG_OVERHEAD:
            raise CorruptLog(f"batch length {length} at position {position}")
        if base < least:
            raise CorruptLog(f"offset {base} at position {position}, where {least} is the least")
        if base + delta >= offset:
            return FoundBatch(position, base, base + delta, length + LOG_OVERHEAD)
        least = base + delta + 1
        position += length + LOG_OVERHEAD
    return None


def is_batch(pread: Callable[[int, int], bytes | None], position: int, end: int, last_offset: int) -> bool:
    """Whether an entry of an index is true: a batch at `position` ends with `last_offset`. No file is asked
    for what lies outside of the segment: that would be an error of its disk."""
    if not 0 <= position <= end - HEADER_SIZE:
        return False
    raw = pread(HEADER_SIZE, position)
    return raw is not None and len(raw) == HEADER_SIZE and read_header(raw).last_offset == last_offset


def headers(file: Readable, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch, unchecked but for its length: CorruptLog if it cannot be."""
    window, window_at = b"", position
    while end - position >= HEADER_SIZE:
        at = position - window_at
        if at + HEADER_SIZE > len(window):
            window, window_at, at = file.pread(min(_WINDOW_BYTES, end - position), position), position, 0
            if len(window) < HEADER_SIZE:  # to end here would say that nothing lies between
                raise CorruptLog(f"the segment ends at {window_at + len(window)}, {end} bytes were written")
        header = read_header(window, at)
        if not MIN_BATCH_LENGTH <= header[1] <= end - position - LOG_OVERHEAD:
            raise CorruptLog(f"batch length {header[1]} at position {position}")
        yield position, header
        position += header[1] + LOG_OVERHEAD


def whole_batches(data: Buffer, offset: int) -> tuple[memoryview, int]:
    """The batches at the beginning of `data` that are there to their ends, and the offset behind them.
    Unchecked: of bytes that mean nothing it gives something, and ends."""
    view, at = memoryview(data), 0
    while len(view) - at >= HEADER_SIZE:
        header = read_header(view, at)
        if not MIN_BATCH_LENGTH <= header.size - LOG_OVERHEAD <= len(view) - at - LOG_OVERHEAD:
            break
        at, offset = at + header.size, header.next_offset
    return view[:at], offset


class Fault(NamedTuple):
    """Why a checked walk stopped before the end."""

    position: int
    reason: str
    is_torn: bool = False
    """The file ends before the batch does, as a write that was interrupted leaves it."""


class CheckedWalk:
    """Every batch of a file from `position` on, with its checksum verified, offsets and epochs ascending.

    The walk ends at the first byte that cannot be right; `fault` then says where and why.

    Offset and leader epoch lie outside the checksum. So a batch is only given out when the next one agrees
    with it: if one jumps ahead and the next falls back, the jump is the fault. A jump of the very last batch,
    which no other can confirm, is a fault if it leads beyond `confirmed`, an end that is known otherwise, and
    is not one of the `jumps`, (base offset, next offset), that were noted. `epoch` is the one in which the
    first batch should be; -1 if that is not known. `epoch_of` says that of any offset, where the log knows.
    `least_epoch` is that of the batch before this file, `behind` the first batch after it: they confirm the
    first and the last one here. Without `confirmed` the log is another program's: its jumps and epochs are as
    they are.
    """

    __slots__ = (
        "_behind",
        "_confirmed",
        "_end",
        "_epoch",
        "_epoch_of",
        "_file",
        "_highest",
        "_least_epoch",
        "_noted",
        "fault",
        "next_offset",
        "position",
    )

    def __init__(
        self,
        file: Readable,
        position: int,
        end: int,
        next_offset: int,
        *,
        confirmed: int | None = None,
        highest: int | None = None,
        epoch: int = -1,
        jumps: Collection[tuple[int, int]] = (),
        epoch_of: Callable[[int], int] | None = None,
        least_epoch: int = -1,
        behind: BatchHeader | None = None,
    ) -> None:
        self._file = file
        self._least_epoch = least_epoch
        self._behind = behind
        self._epoch_of = epoch_of
        self._end = end
        self._confirmed = confirmed
        self._highest = highest
        self._epoch = epoch
        self._noted = jumps
        self.position = position
        """Everything before it has been found whole, and given out."""
        self.next_offset = next_offset
        """The smallest base offset that the next batch may have; after the walk, the end offset."""
        self.fault: Fault | None = None

    def __iter__(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        held: tuple[int, BatchHeader, memoryview] | None = None
        for found in self._intact():
            if held is not None:
                at, before, _ = held
                if not self._follows(found[1], before):
                    if not self._jumped(found[1], before):
                        yield self._give(held)
                        at = found[0]
                    self.fault = Fault(at, _DOES_NOT_FIT)
                    return
                yield self._give(held)
            elif found[1].base_offset < self.next_offset:
                self.fault = Fault(found[0], f"offset {found[1].base_offset} before {self.next_offset}")
                return
            elif self._confirmed is not None and found[1].leader_epoch < self._least_epoch:
                self.fault = Fault(found[0], _DOES_NOT_FIT)
                return
            held = found
        if held is not None:
            last = held[1]
            if self._confirmed is not None and last.next_offset > self._confirmed and self._jumps(last):
                self.fault = Fault(held[0], f"offset {last.base_offset} instead of {self.next_offset}")
                return
            behind = self._behind
            if behind is not None and not self._follows(behind, last) and self._jumped(behind, last):
                self.fault = Fault(held[0], _DOES_NOT_FIT)
                return
            yield self._give(held)

    def _follows(self, header: BatchHeader, before: BatchHeader) -> bool:
        if header.base_offset < before.next_offset:
            return False
        return self._confirmed is None or header.leader_epoch >= before.leader_epoch

    def _jumped(self, header: BatchHeader, before: BatchHeader) -> bool:
        """`header` falls back behind `before`: whether `before` is the wrong one, and had jumped ahead."""
        if header.base_offset < before.next_offset:
            return self._jumps(before)
        return 0 <= self._epoch < before.leader_epoch

    def _jumps(self, header: BatchHeader) -> bool:
        """Whether it lies behind a gap that was not noted."""
        if header.base_offset == self.next_offset:
            return False
        return (header.base_offset, header.next_offset) not in self._noted

    def _give(self, found: tuple[int, BatchHeader, memoryview]) -> tuple[int, BatchHeader, memoryview]:
        at, header, _ = found
        self.position = at + header.size
        self.next_offset = header.next_offset
        self._epoch = header.leader_epoch
        return found

    def _intact(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """The batches whose checksum is right, up to the first that is not."""
        position = data_at = self.position
        data = memoryview(b"")
        while position < self._end:
            at = position - data_at
            need = self._needed(data, at)
            if at + need > len(data):
                data_at, at = position, 0
                data = memoryview(
                    self._file.pread(min(max(_CHUNK_BYTES, need), self._end - data_at), data_at)
                )
                need = self._needed(data, 0)
                if len(data) < need <= self._end - data_at:
                    data = memoryview(self._file.pread(need, data_at))
            try:
                header = check(data, at)
            except CorruptBatch as error:
                self.fault = Fault(position, str(error), is_torn=need > self._end - position)
                return
            if self._highest is not None and header.last_offset > self._highest:
                self.fault = Fault(position, f"offset {header.last_offset} is too far from the first")
                return
            if self._epoch_of is not None:
                known = self._epoch_of(header.base_offset)
                if 0 <= known != header.leader_epoch:
                    self.fault = Fault(position, f"leader epoch {header.leader_epoch} instead of {known}")
                    return
            yield position, header, data[at : at + header.size]
            position += header.size

    def _needed(self, data: memoryview, at: int) -> int:
        """Bytes from `at` on that the next batch takes, as far as can be told."""
        if len(data) - at < LOG_OVERHEAD:
            return HEADER_SIZE
        return max(HEADER_SIZE, int.from_bytes(data[at + 8 : at + 12], "big", signed=True) + LOG_OVERHEAD)


def verify_range(file: File, position: int, length: int, offset: int = 0, *, gapless: bool = False) -> None:
    """Raise CorruptLog unless the range holds intact batches from `offset` on; a cut last one is not judged.

    For a reader that brings a cold range from the disk: nothing corrupt is served.
    """
    walk = CheckedWalk(file, position, position + length, 0)
    expected = None
    for at, header, _ in walk:
        late = header.base_offset > offset if expected is None else header.base_offset != expected
        if gapless and late:
            raise CorruptLog(f"position {at}: offset {header.base_offset} does not follow")
        expected = header.next_offset
    if walk.fault is not None:
        rest = file.pread(min(HEADER_SIZE, position + length - walk.position), walk.position)
        if len(rest) == HEADER_SIZE and read_header(rest).size <= position + length - walk.position:
            raise CorruptLog(f"position {walk.fault.position}: {walk.fault.reason}")

"""One partition's segments, in order, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headrace.arrow.columns import FIRST, Bounds, Columns, Wanted, column_maker
from headrace.arrow.errors import DamagedHistory
from headrace.arrow.fates import Fate, Fates
from headrace.arrow.history import History, OpenSegment
from headrace.client.errors import ClientFailure
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.core.ports import Buffer
from headrace.log import segments
from headrace.protocol.batch import HEADER_SIZE, BatchHeader, check
from headrace.protocol.compression import Compression, decompress

ROWS: Final = 128 * 1024
BYTES: Final = 16 * 1024 * 1024
"""A batch of columns is given away once it has as much. It may become larger by one batch of records."""
CHUNK_BYTES: Final = 4 * 1024 * 1024
_NONE: Final = int(Compression.NONE)


class Block(NamedTuple):
    """Columns of records of one partition."""

    partition: TopicPartition
    taken: tuple[object, ...]
    """The fields of `columns.Taken`."""


class Reading(NamedTuple):
    wanted: Wanted
    bounds: Bounds = Bounds()
    committed_only: bool = True
    rows: int = ROWS
    maker: Callable[[Wanted, Bounds], Columns] | None = None
    """None: the compiled one where it is there."""

    def columns(self, bounds: Bounds) -> Columns:
        return (self.maker or column_maker())(self.wanted, bounds)

    def is_full(self, columns: Columns) -> bool:
        return columns.rows >= self.rows or columns.size >= BYTES


def add_batch(columns: Columns, header: BatchHeader, batch: Buffer) -> None:
    """`batch` was checked. InvalidRecord or CorruptBatch where its inside is broken."""
    if not header.record_count:
        return
    body: Buffer = memoryview(batch)[HEADER_SIZE:]
    if header.compression != _NONE:
        body = decompress(header.compression, body)
    columns.add(header, body)


class PartitionReader:
    def __init__(self, history: History, reading: Reading, stable_end: int | None = None) -> None:
        """`stable_end`: what the history has told of it already."""
        self._history = history
        self._reading = reading
        self._first_ms = reading.bounds.first_ms
        self.position = max(history.start, reading.bounds.first_offset)
        """What is before was given, or left out."""
        if stable_end is None:
            stable_end = history.stable_end(self.position) if reading.committed_only else history.end
        self._end = min(stable_end, reading.bounds.next_offset)
        self._fates = Fates(history, CHUNK_BYTES)
        bounds = reading.bounds._replace(first_offset=self.position, next_offset=self._end)
        self._columns = reading.columns(bounds)
        self.is_held_up = False
        """It ended at a transaction of which nothing says how it ended."""

    def blocks(self) -> Iterator[Block]:
        while self.position < self._end and not self.is_held_up:
            before = self.position
            segment = self._history.open_at(before)
            try:
                yield from self._read(segment)
            except ClientFailure:
                raise
            except HeadraceError as error:
                raise DamagedHistory(segment.name, self.position, str(error)) from None
            finally:
                segment.close()
            if segment.next_offset is None and before == self.position and not self.is_held_up:
                reason = f"it ends there, and everything below {self._history.end} was committed"
                raise DamagedHistory(segment.name, before, reason)
        if self._columns.rows:
            yield self._take()

    def _take(self) -> Block:
        return Block(self._history.partition, self._columns.take())

    def _read(self, segment: OpenSegment) -> Iterator[Block]:
        if not self._is_too_old(segment):
            begin = segment.position_of(self.position)
            for _, header, batch in segments.batches(
                segment.file, begin, segment.size, least=segment.base_offset, chunk_bytes=CHUNK_BYTES
            ):
                if header.next_offset <= self.position:
                    continue
                if header.base_offset >= self._end:
                    self.position = self._end
                    return
                check(batch)
                if not self._take_in(segment, header, batch):
                    self.is_held_up = True
                    return
                self.position = header.next_offset
                if self._reading.is_full(self._columns):
                    yield self._take()
                if self.position >= self._end:
                    return
        if segment.next_offset is not None:
            self.position = max(self.position, segment.next_offset)

    def _is_too_old(self, segment: OpenSegment) -> bool:
        if self._first_ms == FIRST or segment.next_offset is None:
            return False
        latest = segment.latest_ms
        return latest is not None and latest < self._first_ms

    def _take_in(self, segment: OpenSegment, header: BatchHeader, batch: memoryview) -> bool:
        """False where reading ends, because it is not decided whether these records are there."""
        if header.is_control:
            return True
        if header.is_transactional and self._reading.committed_only:
            is_aborted = segment.is_aborted(header)
            if is_aborted is None:
                fate = self._fates.of(header)
                if fate is Fate.UNDECIDED:
                    return False
                is_aborted = fate is Fate.ABORTED
            if is_aborted:
                return True
        if header.max_timestamp >= self._first_ms:
            add_batch(self._columns, header, batch)
        return True

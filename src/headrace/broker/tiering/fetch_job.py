"""What threads do for readers of the history: find the segment, fetch a piece of it, verify every batch.

A call that fails is a `HistoryUnavailable`: the reader is told to come again. What is damaged in the store is
refused in the same way, since another reader could not use it either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from headrace.broker.tiering.chunks import Chunk
from headrace.broker.tiering.history import NOTHING, Beginning
from headrace.core.errors import CorruptBatch, HistoryUnavailable
from headrace.core.ports_objects import Found, ObjectStore, OutcomeUnknown, Part, Refused
from headrace.log import producer_snapshot
from headrace.log.lookup import BatchQuestion, TimestampOffset
from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, check
from headrace.tier.calls import carry_out
from headrace.tier.index_object import CorruptIndexes, Indexes, decode
from headrace.tier.segments import PageRef
from headrace.tier.writing import read_page

if TYPE_CHECKING:
    from headrace.broker.tiering.chunks import ChunkCache
    from headrace.tier.jobs import Place
    from headrace.tier.manifest import Manifest
    from headrace.tier.segments import RemoteSegment

CHUNK_BYTES: Final = 4 * 1024 * 1024


class HistoryReader:
    """Reads one manifest's objects. Every method waits for the store: for threads."""

    def __init__(
        self, store: ObjectStore, place: Place, manifest: Manifest, cache: ChunkCache, deadline_seconds: float
    ) -> None:
        self._store = store
        self._place = place
        self._manifest = manifest
        self._folder = manifest.readable(place.folder)
        self._cache = cache
        self._deadline = deadline_seconds

    def chunk_at(self, offset: int) -> Chunk:
        segment = self._segment_at(offset)
        return self._chunk(segment, self.indexes(segment), offset)

    def first_at(self, timestamp: int, log_start: int, until: int) -> TimestampOffset | None:
        """The first record from `log_start` to before `until` whose time is at least `timestamp`."""
        for segment in self._segments(lambda each: _may_have(each, timestamp, log_start, until)):
            if not _may_have(segment, timestamp, log_start, until):
                continue  # of a page
            indexes = self.indexes(segment)
            offset = max(indexes.offset_before(timestamp), log_start)
            while offset < min(segment.next_offset, until):
                chunk = self._chunk(segment, indexes, offset)
                found = _first_in(chunk, timestamp, log_start)
                if found is not None:
                    return found if found.offset < until else None
                offset = chunk.next_offset
        return None

    def newest(self, log_start: int) -> TimestampOffset | None:
        """The first record with the largest time."""
        largest = max((each.max_timestamp for each in self._manifest.ranges), default=-1)
        return None if largest < 0 else self.first_at(largest, log_start, self._manifest.next_offset)

    def beginning(self) -> Beginning:
        """What a log knows that begins where the store ends."""
        ranges, origin = self._manifest.ranges, self._manifest.origin
        if not ranges and origin is not None:
            return Beginning(self._manifest.start, self._manifest.start, NOTHING, [])
        if not ranges:
            raise HistoryUnavailable("the manifest names no segment")
        *_, last = self._segments(lambda each: each is ranges[-1])
        snapshot = self.indexes(last).producers
        if origin is not None and last.next_offset <= origin.until:
            snapshot = None  # those are the origin's: to the fork they come as strangers
        try:
            producers = [] if snapshot is None else producer_snapshot.decode(snapshot)
        except producer_snapshot.CorruptSnapshot as error:
            raise HistoryUnavailable(f"producers of {last.name}: {error}") from None
        return Beginning(last.next_offset, self._manifest.start, last.epochs[-1].epoch, producers)

    def _segments(self, wanted: Callable[[RemoteSegment | PageRef], bool]) -> Iterator[RemoteSegment]:
        """Of what the manifest names. A page that is not wanted is not read."""
        for each in self._manifest.ranges:
            if not wanted(each):
                continue
            if isinstance(each, PageRef):
                yield from self._listed(each)
            else:
                yield each

    def _listed(self, page: PageRef) -> tuple[RemoteSegment, ...]:
        steps = read_page(self._place.folder, self._place.partition, page)
        found = carry_out(self._store, steps, self._deadline)
        if not isinstance(found, tuple):
            raise HistoryUnavailable(found.reason)
        return found

    def _segment_at(self, offset: int) -> RemoteSegment:
        for each in self._segments(lambda each: each.base_offset <= offset < each.next_offset):
            if offset < each.next_offset:
                return each
        raise HistoryUnavailable(f"no segment in the store has offset {offset}")

    def indexes(self, segment: RemoteSegment) -> Indexes:
        key = self._folder.indexes(segment.name)
        outcome = self._store.get(key, deadline_seconds=self._deadline)
        if not isinstance(outcome, Found):
            raise _unavailable(key, outcome)
        if crc32c(outcome.data) != segment.indexes.crc32c:
            raise HistoryUnavailable(f"{key} is not what was written")
        try:
            return decode(outcome.data, segment.base_offset)
        except CorruptIndexes as error:
            raise HistoryUnavailable(f"{key}: {error}") from None

    def _chunk(self, segment: RemoteSegment, indexes: Indexes, offset: int) -> Chunk:
        """From the batch that reaches `offset` on, or from one soon before it."""
        key = self._folder.records(segment.name)
        position, size = indexes.position_before(offset), CHUNK_BYTES
        while True:
            data = self._range(key, position, min(size, segment.records.size - position))
            if len(data) == segment.records.size and crc32c(data) != segment.records.crc32c:
                raise HistoryUnavailable(f"{key} is not what was written")
            bases, lasts, positions, end = _batches(key, data, segment)
            if not bases:
                size = _first_size(data)
                if size <= len(data) or position + size > segment.records.size:
                    raise HistoryUnavailable(f"{key}: no batch at {position}")
                continue
            if lasts[-1] < offset:
                position += end
                if position >= segment.records.size:
                    raise HistoryUnavailable(f"{key} ends before offset {offset}")
                continue
            file = self._cache.store(data[:end])
            return Chunk(file, end, bases, lasts, positions, indexes)

    def _range(self, key: str, position: int, length: int) -> memoryview:
        outcome = self._store.get_range(key, position, length, deadline_seconds=self._deadline)
        if not isinstance(outcome, Part):
            raise _unavailable(key, outcome)
        if len(outcome.data) != length:
            raise HistoryUnavailable(f"{key} ends at {position + len(outcome.data)}")
        return memoryview(outcome.data)


def _unavailable(key: str, outcome: object) -> HistoryUnavailable:
    reason = outcome.reason if isinstance(outcome, OutcomeUnknown | Refused) else "it is missing"
    return HistoryUnavailable(f"{key}: {reason}")


def _batches(
    key: str, data: memoryview, segment: RemoteSegment
) -> tuple[list[int], list[int], list[int], int]:
    """(base offsets, last offsets, positions) of the whole batches, and where they end. They ascend, and lie
    in the segment: another one's records would pass for its own."""
    bases: list[int] = []
    lasts: list[int] = []
    positions: list[int] = []
    at, following = 0, segment.base_offset
    try:
        while len(data) - at >= HEADER_SIZE and at + _first_size(data[at:]) <= len(data):
            header = check(data, at)
            if not following <= header.base_offset <= header.last_offset < segment.next_offset:
                raise HistoryUnavailable(f"{key}: offset {header.base_offset} does not belong there")
            following = header.last_offset + 1
            bases.append(header.base_offset)
            lasts.append(header.last_offset)
            positions.append(at)
            at += header.size
    except CorruptBatch as error:
        raise HistoryUnavailable(f"{key}: {error}") from None
    return bases, lasts, positions, at


def _may_have(each: RemoteSegment | PageRef, timestamp: int, log_start: int, until: int) -> bool:
    return each.next_offset > log_start and each.max_timestamp >= timestamp and each.base_offset < until


def _first_size(data: memoryview) -> int:
    return int.from_bytes(data[8:12], "big") + LOG_OVERHEAD


def _first_in(chunk: Chunk, timestamp: int, log_start: int) -> TimestampOffset | None:
    for position, header in chunk.headers():
        if header.max_timestamp >= timestamp and header.last_offset >= log_start:
            found = BatchQuestion(chunk.file, position, header, log_start, timestamp).answer()
            if found is not None:
                return found
    return None

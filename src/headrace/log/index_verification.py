"""Whether the index files of a segment are true of its batches. Only reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from headrace.core.ports import Disk
from headrace.log import files
from headrace.log.offset_index import OffsetIndex
from headrace.log.time_index import TimeIndex
from headrace.log.wholeness import FileFault
from headrace.protocol.batch import BatchHeader


class Indexed(NamedTuple):
    """What indexes say of a batch."""

    last_offset: int
    max_timestamp: int


class IndexedSegment(Protocol):
    """`segment.Segment`."""

    base_offset: int

    @property
    def index(self) -> OffsetIndex: ...
    @property
    def times(self) -> TimeIndex: ...


def index_faults(disk: Disk, folder: str, base: int, batches: Mapping[int, Indexed]) -> Iterator[FileFault]:
    """`batches`: by their positions. One fault for each file at most."""
    segment = f"{folder}/{files.numbered(base)}"
    return _faults(disk, segment + files.INDEX, segment + files.TIME_INDEX, base, batches)


def wrong_indexes(
    disk: Disk, segment: IndexedSegment, headers: Iterable[tuple[int, BatchHeader]]
) -> list[str]:
    """The paths of the index files of a segment that are not true of its batches."""
    index, times, base = segment.index.path, segment.times.path, segment.base_offset
    positions = {position for _, position in _entries(OffsetIndex, _read(disk, index))}
    offsets = {base + relative for _, relative in _entries(TimeIndex, _read(disk, times))}
    named = {
        position: Indexed(header.last_offset, header.max_timestamp)
        for position, header in headers
        if position in positions or header.last_offset in offsets
    }
    return [fault.path for fault in _faults(disk, index, times, base, named)]


def _entries(kind: type[OffsetIndex | TimeIndex], content: bytes | None) -> Iterator[tuple[int, int]]:
    """The whole ones."""
    size = kind.ENTRY.size
    return kind.ENTRY.iter_unpack((content or b"")[: len(content or b"") // size * size])


def _faults(
    disk: Disk, index: str, times: str, base: int, batches: Mapping[int, Indexed]
) -> Iterator[FileFault]:
    for path, problem in (
        (index, _offset_fault(disk, index, base, batches)),
        (times, _time_fault(disk, times, base, batches.values())),
    ):
        if problem is not None:
            yield FileFault(path, problem)


def _offset_fault(disk: Disk, path: str, base: int, batches: Mapping[int, Indexed]) -> str | None:
    content = _read(disk, path)
    entry = OffsetIndex.ENTRY
    if content is None or len(content) % entry.size:
        return "it is missing" if content is None else f"{len(content)} bytes are no whole entries"
    for relative, position in entry.iter_unpack(content):
        if relative == position == 0:
            break  # Kafka reserves room that it never used
        batch = batches.get(position)
        if batch is None or batch.last_offset != base + relative:
            return f"no batch at position {position} ends with offset {base + relative}"
    return None


def _time_fault(disk: Disk, path: str, base: int, batches: Iterable[Indexed]) -> str | None:
    content = _read(disk, path)
    entry = TimeIndex.ENTRY
    if content is None or len(content) % entry.size:
        return "it is missing" if content is None else f"{len(content)} bytes are no whole entries"
    known, before = {batch.last_offset: batch.max_timestamp for batch in batches}, -1
    for timestamp, relative in entry.iter_unpack(content):
        if timestamp == relative == 0:
            break
        if timestamp <= before:
            return f"time {timestamp} comes after {before}"
        if base + relative not in known:
            return f"no batch ends with offset {base + relative}"
        if known[base + relative] != timestamp:
            return f"the batch that ends with offset {base + relative} has another time than {timestamp}"
        before = timestamp
    return None


def _read(disk: Disk, path: str) -> bytes | None:
    try:
        return files.read_all(disk, path)
    except FileNotFoundError:
        return None

"""Whether the index files of a segment are true of its batches. Only reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from headrace.core.ports import Disk
from headrace.log import files
from headrace.log.offset_index import OffsetIndex
from headrace.log.time_index import TimeIndex
from headrace.log.wholeness import FileFault


def index_faults(disk: Disk, folder: str, base: int, batches: Mapping[int, int]) -> Iterator[FileFault]:
    """`batches`: the last offset of the batch at each position. One fault for each file at most."""
    segment = f"{folder}/{files.numbered(base)}"
    for path, problem in (
        (segment + files.INDEX, _offset_fault(disk, segment + files.INDEX, base, batches)),
        (segment + files.TIME_INDEX, _time_fault(disk, segment + files.TIME_INDEX, base, batches.values())),
    ):
        if problem is not None:
            yield FileFault(path, problem)


def _offset_fault(disk: Disk, path: str, base: int, batches: Mapping[int, int]) -> str | None:
    content = _read(disk, path)
    entry = OffsetIndex.ENTRY
    if content is None or len(content) % entry.size:
        return "it is missing" if content is None else f"{len(content)} bytes are no whole entries"
    for relative, position in entry.iter_unpack(content):
        if relative == position == 0:
            break  # Kafka reserves room that it never used
        if batches.get(position) != base + relative:
            return f"no batch at position {position} ends with offset {base + relative}"
    return None


def _time_fault(disk: Disk, path: str, base: int, last_offsets: Collection[int]) -> str | None:
    content = _read(disk, path)
    entry = TimeIndex.ENTRY
    if content is None or len(content) % entry.size:
        return "it is missing" if content is None else f"{len(content)} bytes are no whole entries"
    known, before = set(last_offsets), -1
    for timestamp, relative in entry.iter_unpack(content):
        if timestamp == relative == 0:
            break
        if timestamp <= before:
            return f"time {timestamp} comes after {before}"
        if base + relative not in known:
            return f"no batch ends with offset {base + relative}"
        before = timestamp
    return None


def _read(disk: Disk, path: str) -> bytes | None:
    try:
        return files.read_all(disk, path)
    except FileNotFoundError:
        return None

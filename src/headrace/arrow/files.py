"""A partition's folder in the log directory of a broker, which may be running, stopped or gone.

Read are sealed segments, and of the last one what the broker's checkpoint says is committed. Segments may be
deleted, or replaced by compacted ones, meanwhile: the folder is listed anew for each. Between the renames of
such a replacement (`log/cleaner/swap.py`) only a file that is still named `.swap` may have the records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final

from headrace.arrow.columns import FIRST, Bounds
from headrace.arrow.errors import HistoryGone
from headrace.arrow.fates import last_stable_offset
from headrace.arrow.history import ListedSegment, OpenSegment
from headrace.client.errors import ClientFailure
from headrace.core.ids import TopicPartition
from headrace.core.ports import Disk, File
from headrace.log import checkpoints, files, producer_snapshot, scan
from headrace.log.os_disk import ReadOnlyOsDisk
from headrace.log.segments import CHUNK_BYTES
from headrace.protocol.batch import BatchHeader

_ATTEMPTS: Final = 10
"""To open what was listed a moment ago."""
_IN_PLACE: Final = ("", files.SWAP)
"""What follows `.log` in the names of files that hold a part of the log."""
_OFFSET: Final = Struct(">ii")
_TIME: Final = Struct(">qi")


class FileSegment:
    def __init__(self, disk: Disk, folder: str, base_offset: int, next_offset: int | None) -> None:
        self._disk = disk
        self._stem = f"{folder}/{files.numbered(base_offset)}"
        self.name = f"{self._stem}{files.LOG}"
        self.base_offset = base_offset
        self.next_offset = next_offset
        self.file: File = self._open()
        self.size = self.file.size()

    def _open(self) -> File:
        try:
            return self._disk.open(self.name)
        except FileNotFoundError:
            return self._disk.open(f"{self.name}{files.SWAP}")

    def close(self) -> None:
        self.file.close()

    @property
    def latest_ms(self) -> int | None:
        """By the last entry of the time index, which a segment gets when it is sealed."""
        content = self._beside(files.TIME_INDEX)
        if not content or len(content) % _TIME.size:
            return None
        latest, relative = _TIME.unpack_from(content, len(content) - _TIME.size)
        is_sane = latest >= 0 and relative >= 0 and self.next_offset is not None
        return int(latest) if is_sane and self.base_offset + relative < (self.next_offset or 0) else None

    def position_of(self, offset: int) -> int:
        """By the offset index, where what it says is true; else from the beginning."""
        if offset <= self.base_offset:
            return 0
        content = self._beside(files.INDEX)
        low, high = 0, len(content) // _OFFSET.size
        while low < high:
            middle = (low + high) // 2
            if self.base_offset + _OFFSET.unpack_from(content, middle * _OFFSET.size)[0] <= offset:
                low = middle + 1
            else:
                high = middle
        if not low:
            return 0
        relative, position = _OFFSET.unpack_from(content, (low - 1) * _OFFSET.size)
        is_true = scan.is_batch(self.file.pread, position, self.size, self.base_offset + relative)
        return int(position) if is_true else 0

    def is_aborted(self, header: BatchHeader) -> bool | None:  # noqa: ARG002 - markers say it
        return None

    def _beside(self, suffix: str) -> bytes:
        try:
            return files.read_all(self._disk, f"{self._stem}{suffix}")
        except FileNotFoundError:
            return b""


class FileHistory:
    def __init__(self, disk: Disk, folder: str, partition: TopicPartition) -> None:
        self._disk = disk
        self._folder = folder
        self.partition = partition
        bases = self._bases()
        above = os.path.dirname(folder)
        starts = checkpoints.load_offsets(disk, f"{above}/{checkpoints.LOG_START_OFFSETS}")
        watermarks = checkpoints.load_offsets(disk, f"{above}/{checkpoints.HIGH_WATERMARKS}")
        self.start = max(starts.get(partition, 0), bases[0]) if bases else 0
        # Without a checkpoint, nothing says how much of the last segment is committed.
        self.end = max(watermarks.get(partition, bases[-1] if bases else 0), self.start)

    def stable_end(self, first: int) -> int:
        """From the newest snapshot of producers on that is not behind the end; brokers write one whenever a
        segment is sealed. Without any, from the start of the log."""
        names = map(files.parse_numbered, self._disk.list(self._folder))
        found = (each[0] for each in names if each is not None and each[1:] == (files.SNAPSHOT, ""))
        begin, open_there = self.start, {}
        for offset in sorted(found, reverse=True):
            producers = self._producers_at(offset) if self.start <= offset <= self.end else None
            if producers is not None:
                begin, open_there = offset, producers
                break
        return last_stable_offset(self, begin, open_there, first=first, chunk_bytes=CHUNK_BYTES)

    def _producers_at(self, offset: int) -> dict[int, int] | None:
        """Those with an open transaction, and where it begins. None if the snapshot cannot be read."""
        path = f"{self._folder}/{files.numbered(offset)}{files.SNAPSHOT}"
        try:
            entries = producer_snapshot.decode(files.read_all(self._disk, path))
        except (FileNotFoundError, producer_snapshot.CorruptSnapshot):
            return None
        return {each.producer_id: each.txn_first_offset for each in entries if each.txn_first_offset >= 0}

    def open_at(self, offset: int) -> OpenSegment:
        for _ in range(_ATTEMPTS):
            bases = self._bases()
            place = sum(base <= offset for base in bases) - 1
            if place < 0:
                break
            following = bases[place + 1] if place + 1 < len(bases) else None
            try:
                return FileSegment(self._disk, self._folder, bases[place], following)
            except FileNotFoundError:
                continue
        raise HistoryGone(self.partition, offset, min(self._bases(), default=self.end))

    def listed(self, bounds: Bounds) -> Iterator[ListedSegment]:
        offset = max(self.start, bounds.first_offset)
        end = min(self.end, bounds.next_offset)
        while offset < end:
            segment = self.open_at(offset)
            try:
                following = self.end if segment.next_offset is None else segment.next_offset
                latest = segment.latest_ms if bounds.first_ms > FIRST else None
                if latest is None or latest >= bounds.first_ms:
                    yield ListedSegment(segment.base_offset, min(following, self.end), segment.size)
            finally:
                segment.close()
            offset = max(following, offset + 1)

    def _bases(self) -> list[int]:
        """A name that changes while a folder is listed can be left out, and the records of that segment would
        be passed over, as if the one before had them. So two lists have to agree."""
        last = self._listed_bases()
        for _ in range(_ATTEMPTS):
            before, last = last, self._listed_bases()
            if before == last:
                break
        return last

    def _listed_bases(self) -> list[int]:
        found = map(files.parse_numbered, self._disk.list(self._folder))
        return sorted(
            {each[0] for each in found if each is not None and each[1] == files.LOG and each[2] in _IN_PLACE}
        )


def find_histories(
    paths: Iterable[str | Path], topic: str, partitions: Sequence[int] | None = None
) -> list[FileHistory]:
    """Of a topic, in log directories or the folders of its partitions. Of replicas the one that has most."""
    disk = ReadOnlyOsDisk()
    best: dict[int, FileHistory] = {}
    for path in paths:
        for partition, folder in _folders(disk, os.path.abspath(path)):
            if partition.topic == topic and (partitions is None or partition.partition in partitions):
                found = FileHistory(disk, folder, partition)
                known = best.get(partition.partition)
                if known is None or found.end > known.end:
                    best[partition.partition] = found
    return [best[number] for number in sorted(best)]


def _folders(disk: Disk, path: str) -> Iterable[tuple[TopicPartition, str]]:
    if not disk.is_dir(path):
        raise ClientFailure(
            f"{path} is no directory",
            "name a broker's log directory, or a partition's folder as DIR/orders-0",
        )
    named = files.parse_directory(os.path.basename(path))
    if named is not None:
        yield named, path
        return
    for name in disk.list(path):
        partition = files.parse_directory(name)
        if partition is not None and disk.is_dir(f"{path}/{name}"):
            yield partition, f"{path}/{name}"

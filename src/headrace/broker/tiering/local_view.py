"""The log on this broker's disk as the machine of the tier sees it, at one moment.

What is made here on the loop reads no file. A segment is read in the thread that uploads it: once to verify
every batch and to make its indexes of what is really there, and once to send it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from headrace.core.errors import CorruptLog
from headrace.core.ports import Buffer, File
from headrace.log import files
from headrace.log.segments import batches
from headrace.log.transaction_index import TransactionIndex
from headrace.protocol.batch import check
from headrace.tier.index_object import Aborted, Indexes, encode
from headrace.tier.manifest import Manifest
from headrace.tier.segments import NO_TIMESTAMP, EpochStart

if TYPE_CHECKING:
    from headrace.core.ports import Disk
    from headrace.log.partition_log import PartitionLog
    from headrace.log.segment import Segment
    from headrace.replication.partition import Partition

PIECE_BYTES: Final = 1 << 20
INDEX_INTERVAL: Final = 4096
NEVER_OLD: Final = 1 << 62


class SealedSegment:
    """One that nobody writes to any more. `records` and `indexes` are for a thread."""

    __slots__ = (
        "_disk",
        "_indexes",
        "_path",
        "_place",
        "_position",
        "base_offset",
        "max_timestamp",
        "next_offset",
        "size",
    )

    def __init__(
        self,
        disk: Disk,
        segment: Segment,
        next_offset: int,
        max_timestamp: int,
        indexes: Sequence[str],
        place: int,
    ) -> None:
        """`indexes`: the transaction indexes of all segments. That at `place` is its own, and those behind it
        may end transactions that began in it."""
        self._disk = disk
        self._path = segment.path("")
        self._indexes = indexes
        self._place = place
        self._position = 0
        self.base_offset = segment.base_offset
        self.next_offset = next_offset
        self.size = segment.size
        self.max_timestamp = max_timestamp
        """NEVER_OLD where only a disk could tell. Once it was read, it is what its batches say."""

    def indexes(self, base_offset: int) -> Iterable[Buffer]:
        """CorruptLog or CorruptBatch if a batch is not what was written: that is not uploaded."""
        offsets: list[tuple[int, int]] = []
        times: list[tuple[int, int]] = []
        newest, since, first = NO_TIMESTAMP, INDEX_INTERVAL, None
        with self._open() as file:
            found = batches(file, 0, self.size, least=self.base_offset, below=self.next_offset)
            for position, header, batch in found:
                if header.last_offset < base_offset:
                    continue
                check(batch)
                if first is None:
                    first = position
                if since >= INDEX_INTERVAL:
                    offsets.append((header.last_offset, position - first))
                    if newest > (times[-1][0] if times else NO_TIMESTAMP):
                        times.append((newest, header.base_offset))
                    since = 0
                since += header.size
                newest = max(newest, header.max_timestamp)
        if first is None:
            raise CorruptLog(f"{self._path}: nothing lies at offset {base_offset} or behind")
        self._position = first
        # Without any timestamp it is as old as its file, as for retention on a disk.
        self.max_timestamp = newest if newest >= 0 else self._disk.modified_ms(f"{self._path}{files.LOG}")
        yield encode(Indexes(base_offset, offsets, times, self._aborted(base_offset), self._producers()))

    def records(self, base_offset: int) -> Iterable[Buffer]:  # noqa: ARG002 - `indexes` has found where it begins
        with self._open() as file:
            position = self._position
            while position < self.size:
                piece = file.pread_passing(min(PIECE_BYTES, self.size - position), position)
                if not piece:
                    raise CorruptLog(f"{self._path} ends at {position}, {self.size} bytes were written")
                yield piece
                position += len(piece)

    def _aborted(self, base_offset: int) -> list[Aborted]:
        """All that have records here, wherever they ended: everything here is decided."""
        return [
            Aborted(*each)
            for path in self._indexes[self._place :]
            for each in TransactionIndex(self._disk, path).loaded().entries
            if each.last_offset >= base_offset and each.first_offset < self.next_offset
        ]

    def _producers(self) -> bytes | None:
        folder = self._path.rpartition("/")[0]
        try:
            return files.read_all(self._disk, f"{folder}/{files.numbered(self.next_offset)}{files.SNAPSHOT}")
        except FileNotFoundError:
            return None

    @contextmanager
    def _open(self) -> Iterator[File]:
        file = self._disk.open(f"{self._path}{files.LOG}")
        try:
            yield file
        finally:
            file.close()


class LocalView:
    """A `tier.local.LocalLog`."""

    def __init__(
        self, partition: Partition, manifest: Manifest | None, log_start: int, *, copies: bool = True
    ) -> None:
        self._partition = partition
        self._log: PartitionLog = partition.log
        self._manifest = manifest
        self._copies = copies
        self.start = log_start
        self.local_start = self._log.segments[0].base_offset
        self.end = self._log.end_offset
        self.high_watermark = min(partition.high_watermark, self.end)
        self.last_stable_offset = partition.last_stable_offset

    @property
    def sealed(self) -> Sequence[SealedSegment]:
        if not self._copies:
            return ()
        log = self._log
        segments = log.segments
        paths = [each.path(files.TXN_INDEX) for each in segments]
        return [
            SealedSegment(
                log.directory.disk,
                segment,
                segments[place + 1].base_offset,
                self._newest(segment, segments[place + 1].base_offset),
                paths,
                place,
            )
            for place, segment in enumerate(segments[:-1])
        ]

    def _newest(self, segment: Segment, next_offset: int) -> int:
        """The largest timestamp, as far as memory has it. What goes from the disk is in the manifest, which
        says it as well."""
        if segment.max_timestamp >= 0:
            return segment.max_timestamp
        newest = NEVER_OLD
        if self._manifest is not None and self._manifest.next_offset >= next_offset:
            within = [
                each.max_timestamp
                for each in self._manifest.ranges
                if each.base_offset < next_offset and each.next_offset > segment.base_offset
            ]
            newest = max(within, default=NEVER_OLD)
        return newest

    @property
    def epochs(self) -> Sequence[EpochStart]:
        """Of the whole history: what lies before the local log only the manifest knows."""
        local = [EpochStart(*each) for each in self._log.epochs.entries]
        if self._manifest is None:
            return local
        begin = local[0].offset if local else self.end
        before = [each for each in self._manifest.epochs if each.offset < begin]
        if before and local and before[-1].epoch == local[0].epoch:
            del local[0]
        return [*before, *local]

    def bytes_from(self, offset: int) -> int:
        """Of a segment that `offset` lies in, its share by offsets: to know it better, a disk would have to
        be asked."""
        size = 0
        segments = self._log.segments
        for place, segment in enumerate(segments):
            ends = segments[place + 1].base_offset if place + 1 < len(segments) else self.end
            if segment.base_offset >= offset:
                size += segment.size
            elif ends > offset:
                size += segment.size * (ends - offset) // (ends - segment.base_offset)
        return size

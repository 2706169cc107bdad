"""One pass over one log: learn the latest offset of each key in its dirty part, then write its segments anew.

Synchronous, over the disk port, and without any knowledge of the log that is served meanwhile: it reads
sealed files and writes `.cleaned` ones. Whoever serves the log lets it take the next step, and swaps what it
has written (`swap.py`) or stops asking.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.core.errors import ClientError, CorruptBatch, CorruptLog
from headrace.core.ports import Disk, File
from headrace.log import files, scan, segments
from headrace.log.cleaner.batch_filter import open_keys
from headrace.log.cleaner.job import CleanedGroup, CleaningJob, PassEnd, SourceSegment
from headrace.log.cleaner.key_map import KeyMap
from headrace.log.cleaner.rewrite import Pace, Rewriter
from headrace.log.cleaner.transactions import MetTransactions
from headrace.log.index_file import WrongIndex
from headrace.log.offset_index import OffsetIndex
from headrace.protocol.batch import BatchHeader, check


def clean(disk: Disk, job: CleaningJob, pace: Pace) -> Iterator[CleanedGroup | PassEnd]:
    """Every group as it is written, then how far the log is clean. Raises CorruptLog, or OSError."""
    keys = _Mapping(disk, job, pace).build()
    rewriter = Rewriter(disk, job, keys, pace)
    place = 0
    mapped = [source for source in job.sources if source.base_offset < keys.end]
    while place < len(mapped):
        group = rewriter.rewrite(place, mapped[place:])
        yield group
        place += group.segments
    yield PassEnd(keys.end, len(keys), keys.utilisation)


class _Mapping:
    """Fills the key map from the first dirty batch on, until it is full or everything is in it."""

    __slots__ = ("_disk", "_job", "_met", "_pace")

    def __init__(self, disk: Disk, job: CleaningJob, pace: Pace) -> None:
        self._disk = disk
        self._job = job
        self._pace = pace
        reaching = [entry for entry in job.aborted if entry.last_offset >= job.first_dirty]
        self._met = MetTransactions(reaching)

    def build(self) -> KeyMap:
        job = self._job
        keys = KeyMap(job.first_dirty, job.map_bytes)
        for source, ends in job.ends():
            if ends > job.first_dirty:
                if source.size and self._map(source, ends, keys):
                    break
                keys.end = ends
        keys.seal()
        return keys

    def _map(self, source: SourceSegment, ends: int, keys: KeyMap) -> bool:
        """Take in one segment. True if the map became full before its end."""
        file = self._disk.open(f"{self._job.folder}/{files.numbered(source.base_offset)}{files.LOG}")
        try:
            position = self._begin(file, source)
            for _, header, batch in segments.batches(
                file,
                position,
                source.size,
                least=source.base_offset,
                below=ends,
                chunk_bytes=self._job.io_bytes,
            ):
                if header.last_offset < self._job.first_dirty:
                    continue
                self._pace(header.size)
                if header.base_offset < keys.begin:
                    keys.begin = header.base_offset  # what is dirty begins inside of it
                if not keys.has_room_for(header.record_count):
                    return True
                self._take(header, batch, keys)
                keys.end = header.next_offset
        finally:
            file.close()
        return False

    def _take(self, header: BatchHeader, batch: memoryview, keys: KeyMap) -> None:
        try:
            check(batch)  # of markers too: a flipped bit could end the transaction of another producer
        except CorruptBatch as error:
            raise CorruptLog(f"offset {header.base_offset} of {self._job.folder}: {error}") from None
        if header.is_control:
            self._met.meet_marker(header, batch)
            return
        if self._met.meet_data(header) or not header.record_count:
            return
        try:
            opened = open_keys(batch)
        except ClientError:
            keys.open_again(header.base_offset)
            return
        keys.put(header.base_offset, opened.keys, opened.deltas)
        if opened.has_tombstones or opened.deltas is not None:
            keys.open_again(header.base_offset)

    def _begin(self, file: File, source: SourceSegment) -> int:
        """Where to begin in the segment that holds the first dirty offset, by its index if that is right."""
        if source.base_offset >= self._job.first_dirty:
            return 0
        path = f"{self._job.folder}/{files.numbered(source.base_offset)}{files.INDEX}"
        index = OffsetIndex(self._disk, path, source.base_offset)
        try:
            index.assume(self._disk.size(path) // index.ENTRY.size)
            position, expected = index.lookup(self._job.first_dirty)
            found = scan.find_batch(
                file, position, source.size, self._job.first_dirty, source.base_offset, expected
            )
        except (FileNotFoundError, WrongIndex, CorruptLog):
            return 0
        return source.size if found is None else found.position

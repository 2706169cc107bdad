"""One segment: `<base offset>.log` and its indexes. The last one of a log is active, the others are sealed.

Invariants: batches lie one after the other from position 0 to `size`, with ascending offsets that are at
least `base_offset`; a byte beyond `size` is not part of the log, whatever it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.core.errors import CorruptBatch, CorruptLog
from headrace.core.ports import File
from headrace.log import files, index_verification, scan
from headrace.log.directory import LogDirectory
from headrace.log.index_file import WrongIndex
from headrace.log.offset_index import OffsetIndex
from headrace.log.read_state import ReadState, UnverifiedReads
from headrace.log.time_index import NO_TIMESTAMP, TimeIndex
from headrace.log.transaction_index import TransactionIndex
from headrace.protocol.batch import HEADER_SIZE, BatchHeader, check, read_header

MAX_RELATIVE_OFFSET: Final = 0x7FFFFFFF
_RECENT_BATCHES: Final = 16
UNKNOWN_TIMESTAMP: Final = -2
NEVER: Final = 1 << 63


class Segment:
    __slots__ = (
        "_directory",
        "_folder",
        "_is_new",
        "_older",
        "_recent",
        "_since_entry",
        "_transactions",
        "appended_from",
        "base_offset",
        "clock_start",
        "created_ms",
        "first_checksum",
        "index",
        "index_full",
        "index_interval",
        "is_vouched",
        "max_index_entries",
        "max_timestamp",
        "max_timestamp_offset",
        "open_file",
        "reads",
        "roll_at",
        "rolls_by_timestamp",
        "size",
        "times",
    )

    def __init__(
        self,
        directory: LogDirectory,
        folder: str,
        base_offset: int,
        *,
        created_ms: int,
        index_interval: int = 4096,
        max_index_bytes: int = 10 * 1024 * 1024,
    ) -> None:
        self._directory = directory
        self._folder = folder
        self._is_new = False
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.index_interval = index_interval
        self.max_index_entries = 0
        self.limit_indexes(max_index_bytes)
        self.index_full = False
        self.first_checksum: int | None = None
        """Of the header of its first batch, where that was met; for the claims of its directory."""
        self.is_vouched = True
        """Whether it is known to be of this log. False for one that was found after a crash, and that nothing
        noted before."""
        self.size = 0
        self.index = OffsetIndex(
            directory.disk, self.path(files.INDEX), base_offset, blocks=directory.index_blocks
        )
        self.times = TimeIndex(directory.disk, self.path(files.TIME_INDEX), base_offset)
        self.times.last_timestamp = NO_TIMESTAMP
        self._transactions: TransactionIndex | None = None
        self.max_timestamp = NO_TIMESTAMP
        """The largest so far; UNKNOWN_TIMESTAMP until somebody asks for that of a sealed segment."""
        self.max_timestamp_offset = base_offset
        self.clock_start = 0
        self.roll_at = NEVER
        """The segment is full of time when a timestamp (or, without any, the clock) passes this."""
        self.rolls_by_timestamp = False
        self.open_file: File | None = None
        """The descriptor while there is one; the hot path looks here before it calls `file`."""
        self.appended_from = NEVER
        """From this position on this process has appended every byte, or recovered it, and has seen none of
        them leave memory."""
        self.reads: ReadState | None = None
        """Made when somebody reads what is not among the newest batches."""
        self._since_entry = 0
        self._recent: dict[int, int] = {}
        self._older: dict[int, int] = {}

    @property
    def highest_offset(self) -> int:
        """The last one that the indexes can speak of."""
        return self.base_offset + MAX_RELATIVE_OFFSET

    # --- names and descriptors ---

    def path(self, suffix: str) -> str:
        return f"{self._folder}/{files.numbered(self.base_offset)}{suffix}"

    @property
    def transactions(self) -> TransactionIndex:
        """Made when it is asked for: most segments of most logs never are."""
        index = self._transactions
        if index is None:
            index = self._transactions = TransactionIndex(
                self._directory.disk, self.path(files.TXN_INDEX), is_new=self._is_new
            )
        return index

    def file(self) -> File:
        file = self.open_file
        if file is None:
            file = self.open_file = self._directory.lend(self, self.path(files.LOG), create=False)
        return file

    def unverified(self) -> UnverifiedReads:
        """For whoever reads it without checksums, and may wait for the disk."""
        return UnverifiedReads(self, self.file())

    def create_file(self) -> None:
        """Make the `.log` of a new segment. A leftover under its name holds nothing of this log."""
        self._is_new = True
        file = self.open_file = self._directory.lend(self, self.path(files.LOG), create=True)
        if file.size():
            file.truncate(0)

    def adopt_file(self, file: File) -> None:
        """Take a descriptor of the `.log` that a thread has opened."""
        if self.open_file is None:
            self.open_file = file
            self._directory.note_lent(self)

    def release(self) -> None:
        """Drop the descriptor. Whoever still sends from it keeps it open until then."""
        self.open_file = None
        self.index.forget_block()
        if self.reads is not None:
            self.reads.forget_positions()

    # --- writing ---

    def note(self, size: int, first_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Take the batch of `size` bytes that lies at the end into the segment and its indexes."""
        position = self.size
        if position < self.appended_from:
            self.appended_from = position
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._since_entry > self.index_interval:
            self.index.append(last_offset, position)
            self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.index_full = self.index.count >= self.max_index_entries
            self._since_entry = 0
        self._since_entry += size
        self.size = position + size
        recent = self._recent
        if len(recent) >= _RECENT_BATCHES:
            self._older = recent
            recent = self._recent = {}
        recent[first_offset] = position

    def start_clock(self, max_timestamp: int, now_ms: int, segment_ms: int) -> None:
        """Called with the first batch: from its timestamp on, `segment_ms` later a new segment begins."""
        self.rolls_by_timestamp = max_timestamp >= 0
        self.clock_start = max_timestamp if max_timestamp >= 0 else now_ms
        self.roll_at = self.clock_start + segment_ms

    def reset_clock(self, segment_ms: int) -> None:
        """The topic's setting has changed."""
        if self.roll_at != NEVER:
            self.roll_at = self.clock_start + segment_ms

    def limit_indexes(self, max_bytes: int) -> None:
        """The time index has the larger entries, so it is full first; its last entry needs a place too."""
        self.max_index_entries = max_bytes // TimeIndex.ENTRY.size - 1

    def flush_indexes(self, *, final: bool) -> None:
        """Write waiting index entries; at the end of a segment also its largest timestamp."""
        if final and self.max_timestamp >= 0:
            self.times.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.index.flush()
        self.times.flush()

    def seal(self) -> None:
        """No more batches will come."""
        self.flush_indexes(final=True)
        self._recent = {}
        self._older = {}

    def index_paths(self) -> list[str]:
        return [self.index.path, self.times.path, self.path(files.TXN_INDEX)]

    def sync_indexes(self) -> None:
        for path in self.index_paths():
            files.sync_path(self._directory.disk, path)
        self._directory.disk.sync_dir(self._folder)

    def truncate_to(self, offset: int) -> int | None:
        """Cut the segment before the batch that holds `offset`; its first offset, or None if none does.

        The caller syncs the file."""
        found = self.locate(offset)
        if found is None:
            return None
        file = self.file()
        file.truncate(found.position)
        self.size = found.position
        if not self.size:
            self.first_checksum = None
            self.is_vouched = True
        self.transactions.truncate_to(found.base_offset)
        self._recent = {}
        self._older = {}
        self.reads = None
        self.index_full = False
        try:
            self.index.truncate_to(found.base_offset)
            self.times.truncate_to(found.base_offset)
            self.load_tail()
        except WrongIndex:
            self.put_indexes_right()
            self.load_tail()
        return found.base_offset

    # --- reading ---

    def locate(self, offset: int) -> scan.FoundBatch | None:
        """The first batch that reaches `offset`. May wait for the disk."""
        try:
            position, last_offset = self.index.lookup(offset)
            return scan.find_batch(
                self.unverified(), position, self.size, offset, self.base_offset, last_offset
            )
        except WrongIndex:
            self.put_indexes_right()
            position, _ = self.index.lookup(offset)
            return scan.find_batch(self.unverified(), position, self.size, offset, self.base_offset)

    def agrees(self, timestamp: int, last_offset: int) -> bool:
        """Whether an entry of the time index is true of the batches. CorruptLog if it is the batch that is
        wrong: an index that is made from that would say that the segment is older than it is."""
        found = self.locate(last_offset)
        if found is None:
            return False
        file = self.unverified()
        header = read_header(file.pread(HEADER_SIZE, found.position))
        if found.last_offset == last_offset and header.max_timestamp == timestamp:
            return True
        try:
            check(file.pread(found.size, found.position))
        except CorruptBatch as error:
            raise CorruptLog(f"{self.path(files.LOG)}: position {found.position}: {error}") from None
        return False

    def position_of(self, offset: int) -> int:
        """Where the first batch that reaches `offset` begins; `size` when none does."""
        position = self._recent.get(offset)
        if position is None:
            position = self._older.get(offset)
            if position is None:
                found = self.locate(offset)
                return self.size if found is None else found.position
        return position

    def recent_position(self, offset: int) -> int:
        """Where one of the newest batches, which begins with `offset`, lies; -1 if it is none of them."""
        position = self._recent.get(offset)
        return self._older.get(offset, -1) if position is None else position

    def read_state(self) -> ReadState:
        if self.reads is None:
            self.reads = ReadState()
        return self.reads

    def is_trusted(self, position: int, end: int) -> bool:
        """Whether the bytes are what was written, as far as this process can know without reading them."""
        appended_from = self.appended_from
        if position >= appended_from:
            return True
        return self.reads is not None and self.reads.covers(position, min(end, appended_from))

    @property
    def trusts_nothing(self) -> bool:
        return self.appended_from >= self.size and (self.reads is None or not self.reads.has_verified)

    def distrust(self) -> None:
        """A part of the segment is not in memory: what comes back is what the disk says."""
        self.appended_from = max(self.appended_from, self.size)
        if self.reads is not None:
            self.reads.forget_verified()

    # --- loading ---

    def load_tail(self) -> int:
        """Learn the end offset and the largest timestamp from the indexes and the batches after them.
        WrongIndex if what they end with is not true."""
        if not self.tail_is_indexed() or not self._last_time_is_true():
            raise WrongIndex(f"{self.path(files.LOG)}: an index does not end with what is there")
        last_offset, position = self.index.last()
        self.max_timestamp, self.max_timestamp_offset = self.times.last()
        end_offset = self.base_offset if position == 0 else last_offset + 1
        since = 0
        self._since_entry = 0
        if not self.size:
            return self.base_offset
        for at, header in scan.headers(self.unverified(), position, self.size):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
            end_offset = header.next_offset
            since = at + header.size - position
        self._since_entry = since
        return end_offset

    def _last_time_is_true(self) -> bool:
        try:
            return not self.times.count or self.agrees(*self.times.last())
        except CorruptLog:
            return True  # it is the batch that is not

    def put_indexes_right(self) -> None:
        """Make them again while the log is in use, and say so."""
        for path in self.rebuild_indexes():
            self._directory.on_rebuilt(path)

    def rebuild_indexes(self) -> list[str]:
        """Make the indexes anew from the headers of the batches, CorruptLog if those are wrong. The paths of
        those that were not what had been written.

        Then they stay as they are: of what lies before the damage alone, the segment would seem older."""
        size = self.size
        wrong = index_verification.wrong_indexes(self._directory.disk, self, self._headers(size))
        appended_from = self.appended_from
        self.reset_indexes()
        try:
            for _, header in self._headers(size):
                self.note(header.size, header.base_offset, header.last_offset, header.max_timestamp)
        finally:  # also if it met damage: were it shorter now, readers would pass over what is missing
            self.size = size
            self.appended_from = appended_from
            self.distrust()  # some of it may have come from the disk just now
        self.flush_indexes(final=True)
        return wrong or [self.index.path, self.times.path]  # what is there may be true, and not be all

    def _headers(self, size: int) -> Iterator[tuple[int, BatchHeader]]:
        expected = self.base_offset
        for position, header in scan.headers(self.unverified(), 0, size):
            if not expected <= header.base_offset <= header.last_offset <= self.highest_offset:
                raise CorruptLog(f"{self.path(files.LOG)}: offset {header.base_offset} at {position}")
            yield position, header
            expected = header.next_offset

    def reset_indexes(self) -> None:
        """Empty indexes, to be filled by a walk over the batches."""
        self.index.reset()
        self.times.reset()
        self.times.load_last()
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self._since_entry = 0
        self.index_full = False
        self._recent = {}
        self._older = {}
        self.size = 0

    def tail_is_indexed(self) -> bool:
        """Whether the last entries, from which the end is found, are true of the log."""
        if not self.index.count:
            return True
        last_offset, position = self.index.last()
        return scan.is_batch(self.file().pread, position, self.size, last_offset)

    def forget_timestamps(self) -> None:
        """Of a sealed segment, until somebody asks."""
        self.max_timestamp = UNKNOWN_TIMESTAMP

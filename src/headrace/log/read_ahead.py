"""Bringing a cold range into memory, in a thread, with every checksum verified on the way.

Take, run, done: the job is made on the loop with all that the thread needs to know, `run` may go to a
thread, and `done` says on the loop what was found, if the log is still the one that it was taken of.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from headrace.core.errors import CorruptLog
from headrace.core.ports import File
from headrace.log import files, scan
from headrace.log.damage_search import Place, is_whole, next_whole
from headrace.log.descriptors import RESERVE
from headrace.log.index_file import WrongIndex
from headrace.log.read_state import Damage
from headrace.protocol.batch import HEADER_SIZE, MAGIC, read_header

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog
    from headrace.log.segment import Segment
    from headrace.log.transaction_index import Loaded

MAX_AHEAD_BYTES: Final = 4 * 1024 * 1024
"""A reader that comes in order is read ahead of by as much as it has read, up to this."""
MAX_RANGE_BYTES: Final = 8 * 1024 * 1024


class ReadAhead:
    __slots__ = (
        "_file",
        "_found",
        "_highest",
        "_index_is_wrong",
        "_length",
        "_loaded",
        "_offset",
        "_opened",
        "_size",
        "_start",
        "_state",
        "_unknown",
        "_verified_to",
        "_written",
        "damages",
        "log",
        "segment",
    )

    def __init__(
        self, log: PartitionLog, segment: Segment, offset: int, length: int, *, transactions: bool = False
    ) -> None:
        """Bring `length` bytes from the first batch on that reaches `offset`."""
        self.log = log
        self.segment = segment
        self._offset = offset
        self._length = min(length, MAX_RANGE_BYTES)
        self._state = log.truncations
        self._file = segment.open_file
        self._size = segment.size
        self._highest = log.last_offset_of(segment)
        self._written = segment.index.written
        self._start = segment.recent_position(offset) if offset > segment.base_offset else 0
        if segment.reads is not None:
            if self._start < 0:
                known = segment.reads.position_of(offset)
                self._start = -1 if known is None else known
            if self._start >= 0:
                self._length += min(segment.reads.run_before(self._start), MAX_AHEAD_BYTES)
        self._unknown = [
            each.transactions
            for each in log.segments
            if transactions and each.base_offset >= segment.base_offset and not each.transactions.is_known
        ]
        self._distrust_what_comes_back()
        self._opened: File | None = None
        self._index_is_wrong = False
        self._found = -1
        self._verified_to = -1
        self._loaded: list[Loaded] = []
        self.damages: list[Damage] = []

    @classmethod
    def at(cls, log: PartitionLog, segment: Segment, position: int) -> ReadAhead:
        """The same from a batch on whose position is known."""
        job = cls(log, segment, segment.base_offset, MAX_RANGE_BYTES)
        job._start = position
        return job

    def _distrust_what_comes_back(self) -> None:
        """What this brings from a disk, and what the kernel reads ahead of it, will look as if it had never
        left memory. Of a file that nobody has open, nobody knows what has left."""
        segment, begin = self.segment, max(self._start, 0)
        if segment.trusts_nothing:
            return
        if self._file is None or not self._file.is_resident(begin, self._size - begin):
            segment.distrust()

    # --- in a thread ---

    def run(self) -> None:
        """OSError: the disk does not give it."""
        file = self._file
        if file is None:
            if RESERVE.is_in_use():  # it is not for readers, who ask again
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), self.segment.path(files.LOG))
            file = self._opened = self.log.directory.disk.open(self.segment.path(files.LOG))
        self._loaded = [index.loaded() for index in self._unknown]
        self._verify(file, self._start if self._is_there(file) else self._near(file))

    def _is_there(self, file: File) -> bool:
        """Whether the wanted batch still is where it was: an offset has no checksum, and whoever believed one
        that went back would take the next batch for the wanted one."""
        if self._start < 0:
            return False
        first = file.pread(HEADER_SIZE, self._start)
        return len(first) < HEADER_SIZE or read_header(first).last_offset >= self._offset

    def _near(self, file: File) -> int:
        """A batch at or before the wanted one: by the index or, if that is wrong, by walking there."""
        segment = self.segment
        try:
            index = segment.index
            place, relative, position = index.search_written(
                self._offset - segment.base_offset, self._written
            )
            if place < 0:
                return 0
            if scan.is_batch(file.pread, position, self._size, segment.base_offset + relative):
                return position
        except WrongIndex:
            pass
        self._index_is_wrong = True
        return self._walk_near(file)

    def _walk_near(self, file: File) -> int:
        """By headers alone. Where that leads past the wanted offset, the batch before it is to be verified:
        it may say that it ends too early."""
        before, at, expected = 0, 0, self.segment.base_offset
        try:
            for position, header in scan.headers(file, 0, self._size):
                if header.base_offset < expected:
                    raise CorruptLog(f"offset {header.base_offset} at position {position}")
                if header.last_offset >= self._offset:
                    return position if header.base_offset <= self._offset else before
                before, at, expected = position, position + header.size, header.next_offset
        except CorruptLog as error:
            # The index was right, and what it leads to is damaged.
            self._index_is_wrong = False
            return self._pass_over(file, at, expected, expected, str(error))
        if at < self._size:  # whoever took that for the end would lead readers past what is lost
            self._index_is_wrong = False
            reason = f"the file ends at {at}, {self._size} bytes were written"
            return self._pass_over(file, at, expected, expected, reason)
        return before

    def _verify(self, file: File, begin: int) -> None:
        """Walk to the batch that is wanted, from there over all that is wanted, and past damage before it."""
        segment = self.segment
        until, tried_again = self._size, -1
        after = segment.base_offset
        """No batch behind the next damage begins before it, or at it."""
        while begin < self._size:
            walk = scan.CheckedWalk(
                file,
                begin,
                self._size,
                segment.base_offset,
                highest=self._highest,
                epoch_of=self.log.epochs.epoch_of,
            )
            for position, header, _ in walk:
                if self._found < 0 and header.last_offset >= self._offset:
                    if self.damages and header.base_offset > self._offset:
                        self._found = self.damages[-1].position  # it was in what is damaged
                        return
                    self._found = position
                    until = position + self._length
                if position + header.size >= until:
                    break
            self._start, self._verified_to = begin, walk.position
            fault = walk.fault
            if fault is None:
                break
            if fault.position != tried_again and is_whole(file, fault.position, self._size):
                begin = tried_again = fault.position  # read once more before anything is believed
                continue
            if walk.position > begin:
                after = lost = walk.next_offset
            else:
                lost = self._told_offset(file, begin)
            begin = self._pass_over(file, fault.position, lost, after, fault.reason)
            if self._found >= 0:
                return
        if self._found < 0:
            self._found = self.damages[-1].position if self.damages else self._size

    def _pass_over(self, file: File, position: int, offset: int, after: int, reason: str) -> int:
        """Note damage; where a whole batch begins again."""
        place = Place(after, self._highest)
        end = next_whole(file, position, self._size, self.segment.index, self._written, place)
        behind = file.pread(HEADER_SIZE, end) if end < self._size else b""
        end_offset = read_header(behind).base_offset if behind else self._highest + 1
        self.damages.append(Damage(position, end, offset, end_offset, reason))
        return end

    def _told_offset(self, file: File, position: int) -> int:
        """The first offset of a damaged batch, if its header can still be believed."""
        raw = file.pread(HEADER_SIZE, position)
        if len(raw) == HEADER_SIZE:
            header = read_header(raw)
            if header.magic == MAGIC and self.segment.base_offset <= header.base_offset <= self._offset:
                return header.base_offset
        return self._offset

    # --- on the loop ---

    @property
    def holds(self) -> bool:
        """Whether the log is still what this was taken of: otherwise what was found means nothing."""
        log = self.log
        return (
            not log.closed
            and log.truncations == self._state
            and any(segment is self.segment for segment in log.segments)
        )

    def done(self) -> list[Damage]:
        """Let the log know what was found. The damage that was not known."""
        if not self.holds:
            return []
        segment = self.segment
        if self._opened is not None:
            segment.adopt_file(self._opened)
        for loaded in self._loaded:
            loaded.owner.take(loaded)
        reads = segment.read_state()
        if self._found >= 0:
            reads.learn(self._offset, self._found)
        if 0 <= self._start < self._verified_to:
            reads.note_verified(self._start, self._verified_to)
        known = [damage.position for damage in reads.damage]
        return [damage for damage in self.damages if damage.position not in known]

    @property
    def index_is_wrong(self) -> bool:
        return self._index_is_wrong or (not self.damages and self.segment.read_state().index_is_doubted)

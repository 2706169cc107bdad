"""Reading a sealed segment to see whether it still holds what was written, a piece at a time.

Take, run, done, as with flushes: `run` may go to a thread. It leaves the page cache as it found it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.core.ports import Disk, File
from headrace.log import files, scan
from headrace.protocol.batch import BatchHeader

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog
    from headrace.log.segment import Segment

PIECE_BYTES: Final = 1024 * 1024


class Cursor(NamedTuple):
    """Where a pass goes on: with the segment of that base offset, or the first one behind it."""

    topic: str
    partition: int
    base_offset: int


class Checkpoint(NamedTuple):
    """How far the scrub is, over restarts."""

    began_ms: int
    """When the pass began that is under way, or was the last."""
    ended_ms: int
    """When the last whole pass came to its end; 0 if none did."""
    cursor: Cursor | None
    """None: no pass is under way."""

    def encode(self) -> bytes:
        at = "" if self.cursor is None else " ".join(map(str, self.cursor))
        return f"0\n{self.began_ms}\n{self.ended_ms}\n{at}\n".encode()

    @classmethod
    def parse(cls, content: bytes) -> Checkpoint:
        """A file that cannot be read is as good as none: the pass begins anew."""
        try:
            version, began, ended, at = content.decode().split("\n")[:4]
            if version != "0":
                return NEVER
            topic, partition, base = at.split(" ") if at else ("", "", "")
            cursor = Cursor(topic, int(partition), int(base)) if at else None
            return cls(int(began), int(ended), cursor)
        except ValueError:
            return NEVER


NEVER: Final = Checkpoint(0, 0, None)
CHECKPOINT: Final = "headrace-scrub-checkpoint"


def load_checkpoint(disk: Disk, directory: str) -> Checkpoint:
    try:
        return Checkpoint.parse(files.read_all(disk, f"{directory}/{CHECKPOINT}"))
    except FileNotFoundError:
        return NEVER


def save_checkpoint(disk: Disk, directory: str, checkpoint: Checkpoint) -> None:
    """Not synced: what a crash takes back is read once more."""
    files.replace(disk, f"{directory}/{CHECKPOINT}", checkpoint.encode(), sync=False)


class Round:
    """How much of all sealed bytes one pass has verified.

    Logs grow, shrink and vanish meanwhile: the sum is that of the beginning, and whatever became of a log, it
    is done when the pass has left it.
    """

    __slots__ = ("_in_log", "_left", "_total")

    def __init__(self, total: int = 0) -> None:
        self._total = total
        self._left = 0
        self._in_log = 0

    def note(self, verified: int) -> None:
        self._in_log += verified

    def end_log(self, size: int) -> None:
        """`size` is what the log had when the pass began."""
        self._left += size
        self._in_log = 0

    @property
    def share(self) -> float:
        return min((self._left + self._in_log) / self._total, 1.0) if self._total else 0.0


class SegmentScrub:
    """One pass over one segment. `position` says how far it is; `fault` ends it."""

    __slots__ = (
        "_file",
        "_highest",
        "_next_offset",
        "_size",
        "_truncations",
        "fault",
        "log",
        "position",
        "segment",
    )

    def __init__(self, log: PartitionLog, segment: Segment) -> None:
        self.log = log
        self.segment = segment
        self._truncations = log.truncations
        self._size = segment.size
        self._highest = log.last_offset_of(segment)
        self._next_offset = segment.base_offset
        self._file: _Passing | None = None
        self.position = 0
        self.fault: scan.Fault | None = None

    @property
    def is_over(self) -> bool:
        return self.fault is not None or self.position >= self._size

    @property
    def holds(self) -> bool:
        """Whether the segment is still a part of its log, and sealed."""
        log = self.log
        return (
            not log.closed
            and log.directory.is_online
            and log.truncations == self._truncations
            and any(each is self.segment for each in log.segments[:-1])
        )

    def run(self) -> int:
        """Verify the next piece; how many bytes it had. OSError: the disk does not give it."""
        if self._file is None:
            # A descriptor of its own: its way of reading is not that of the segment's readers.
            self._file = _Passing(self.log.directory.disk.open(self.segment.path(files.LOG)))
        begin = self.position
        walk = scan.CheckedWalk(
            self._file,
            begin,
            self._size,
            self._next_offset,
            highest=self._highest,
            epoch_of=self.log.epochs.epoch_of,
        )
        for _ in _until(walk, begin + PIECE_BYTES):
            pass
        self.fault = walk.fault
        self.position, self._next_offset = walk.position, walk.next_offset
        return self.position - begin

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _until(walk: scan.CheckedWalk, end: int) -> Iterator[BatchHeader]:
    for position, header, _ in walk:
        yield header
        if position + header.size >= end:
            return


class _Passing:
    """A file as `CheckedWalk` needs it, read without keeping it in memory."""

    __slots__ = ("_file",)

    def __init__(self, file: File) -> None:
        self._file = file

    def pread(self, length: int, position: int) -> bytes:
        return self._file.pread_passing(length, position)

    def close(self) -> None:
        self._file.close()

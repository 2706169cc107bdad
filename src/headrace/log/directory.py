"""One log directory: where it is, whether it still works, and the descriptors it lends to its segments.

A directory that fails once is offline for good: what it holds is no longer known. Its partitions answer
StorageError, the others go on. One that is only full has lost nothing: it takes writes again when there is
room. Nor is a lack of descriptors its fault: that is the process's, and passes. An error of fsync in
particular is never tried again, because the system may have dropped the very pages it could not write.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

from headrace.core.errors import DiskFull, StorageError, TooManyOpenFiles
from headrace.core.ids import TopicPartition
from headrace.core.ports import Disk, File, SyncFailed
from headrace.log import wholeness
from headrace.log.descriptors import RESERVE, is_lack_of_descriptors
from headrace.log.full_disk import is_full_disk
from headrace.log.index_blocks import IndexBlocks

Lowered = tuple[int, int, int]
"""Recovery point, log start and end of a log that is about to be cut."""

MAX_OPEN_SEGMENTS: Final = 4096
"""Segment descriptors that one directory keeps open."""

_ADVICE: Final = {
    errno.ENOSPC: "free space on it (nothing uses its folders that end in -stray), then restart the broker",
    errno.EDQUOT: "raise its quota, then restart the broker",
    errno.EROFS: "mount it writable, then restart the broker",
    errno.EACCES: "give the broker's user access to it, then restart the broker",
    errno.EMFILE: "raise the limit of open files (ulimit -n), then restart the broker",
    errno.EIO: "replace the disk, or check it, before it is used again",
}

_NOTHING_LOST: Final = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EACCES)
"""Except of a sync: what could not be written was refused, and what was written before is untouched."""


class HoldsFile(Protocol):
    def release(self) -> None:
        """Let go of the descriptor; it is opened again when it is needed."""
        ...


class WatchedLog(Protocol):
    """A log that its directory remembers, because something of it is not on the disk yet."""

    def flush_is_due(self, now_ms: int) -> bool: ...


class LogDirectory:
    __slots__ = (
        "_lent",
        "_on_failure",
        "_on_loss",
        "dirty",
        "disk",
        "failure",
        "index_blocks",
        "is_full",
        "lock",
        "lower_checkpoints",
        "max_open",
        "may_have_lost",
        "on_full",
        "on_new_producer",
        "on_raised",
        "on_rebuilt",
        "path",
        "raised",
        "uuid",
        "wholeness",
    )

    def __init__(
        self,
        disk: Disk,
        path: str,
        uuid: UUID,
        on_failure: Callable[[LogDirectory, StorageError], None] | None = None,
        max_open: int = MAX_OPEN_SEGMENTS,
        on_loss: Callable[[LogDirectory], None] | None = None,
    ) -> None:
        self.disk = disk
        self.path = path
        self.uuid = uuid
        self.failure: StorageError | None = None
        self.is_full = False
        """Too little room is left: clients are refused. Whoever watches the free space says so."""
        self.on_full: Callable[[LogDirectory], None] = _nobody_watches
        """Called when a write has found no room. From any thread."""
        self.on_new_producer: Callable[[], bool] = _everybody_may
        """Asked before a client's producer is remembered that a log does not know yet."""
        self.may_have_lost = False
        """It failed in a way after which what was written and not synced may be gone."""
        self._on_failure = on_failure
        self._on_loss = on_loss
        self.max_open = max_open
        self._lent: deque[HoldsFile] = deque()
        self.dirty: dict[WatchedLog, None] = {}
        """Logs with something that is not synced, as they came. (A set is ordered by addresses in memory.)"""
        self.raised: dict[WatchedLog, None] = {}
        """Logs whose start was raised, which a restart would not find yet."""
        self.on_raised: Callable[[], None] = _nobody_asks
        """Called when another one is among them: a checkpoint is wanted soon."""
        self.on_rebuilt: Callable[[str], None] = _nobody_hears
        """Called with the path of an index that was not what had been written, and was made again."""
        self.index_blocks = IndexBlocks()
        """Of this directory alone, until a manager gives all of its directories the same."""
        self.lock: File | None = None
        self.wholeness = wholeness.ALL_ON
        """What is demanded of a log before it is believed."""
        self.lower_checkpoints: Callable[[Mapping[TopicPartition, Lowered]], None] = _no_checkpoint
        """Called with new recovery points, log starts and ends before logs are cut."""

    @property
    def is_online(self) -> bool:
        return self.failure is None

    def require_online(self) -> None:
        if self.failure is not None:
            raise StorageError(str(self.failure))

    def fail(self, error: OSError, doing: str, *, half_done: bool = False) -> StorageError:
        """Take the directory offline, once; the error to raise for what was being done.

        If only descriptors were lacking it stays: it can be tried again, unless it is `half_done`.
        """
        if is_lack_of_descriptors(error) and not half_done and self.failure is None:
            return TooManyOpenFiles(
                f"log directory {self.path}: {doing}: {error}; raise the limit of open files (ulimit -n)"
            )
        advice = _ADVICE.get(error.errno or 0, "look at the disk before the broker is restarted")
        failure = StorageError(f"log directory {self.path} is offline: {doing}: {error}; {advice}")
        is_first = self.failure is None
        if is_first:
            self.failure = failure  # before anything else is tried with a disk that may hang
        is_loss = isinstance(error, SyncFailed) or error.errno not in _NOTHING_LOST
        if is_loss and not self.may_have_lost:
            # Also of one that is offline: a disk that was full is synced when the broker stops.
            self.may_have_lost = True
            if self._on_loss is not None:
                self._on_loss(self)
        if is_first and self._on_failure is not None:
            self._on_failure(self, failure)
        return failure

    def refuse(self, error: OSError, doing: str) -> StorageError:
        """For a write that was taken back: a full disk has lost nothing and stays; all else is as above."""
        if not is_full_disk(error):
            return self.fail(error, doing)
        self.is_full = True
        self.on_full(self)
        return DiskFull(f"log directory {self.path} is full: {doing}: {error}; free space on it")

    def admits_producer(self) -> bool:
        return self.on_new_producer()

    def note_raised(self, log: WatchedLog) -> None:
        self.raised[log] = None
        self.on_raised()

    def unlock(self) -> None:
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    def lend(self, holder: HoldsFile, path: str, *, create: bool) -> File:
        """Open a segment file. When there are too many, those that were opened first are let go."""
        lent = self._lent
        try:
            file = self.disk.open(path, create=create)
        except OSError as error:
            if not is_lack_of_descriptors(error) or not lent:
                raise
            self._take_back_half()
            file = self.disk.open(path, create=create)
        if RESERVE.is_in_use():
            self._take_back_half()  # what is kept for others is not for segments, which stay open
        self.note_lent(holder)
        return file

    def _take_back_half(self) -> None:
        lent = self._lent
        for _ in range((len(lent) + 1) // 2):
            lent.popleft().release()

    def note_lent(self, holder: HoldsFile) -> None:
        lent = self._lent
        lent.append(holder)
        if len(lent) > self.max_open:
            lent.popleft().release()


def online_among(directories: Sequence[LogDirectory]) -> list[LogDirectory]:
    return [directory for directory in directories if directory.is_online]


def require_one_online(directories: Sequence[LogDirectory]) -> None:
    if not online_among(directories):
        raise StorageError(
            "no log directory can be used: " + "; ".join(str(each.failure) for each in directories)
        )


def _no_checkpoint(lowered: Mapping[TopicPartition, Lowered]) -> None:
    """A log that is opened by itself, without a manager, has no checkpoint to lower."""


def _nobody_hears(path: str) -> None:
    """A log that is opened by itself, without a broker."""


def _everybody_may() -> bool:
    return True


def _nobody_asks() -> None:
    """A log that is opened by itself, without a broker, has its start written when somebody wants it."""


def _nobody_watches(directory: LogDirectory) -> None:
    """A log that is opened by itself, without a broker: whoever writes to it is told, and may try again."""
    directory.is_full = False

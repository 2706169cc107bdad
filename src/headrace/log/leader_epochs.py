"""Which leader epoch began at which offset: `leader-epoch-checkpoint`.

Every batch carries its epoch, so the file can always be rebuilt from the log. It is therefore written
without a sync when an epoch begins; the next flush of the log syncs it, before the recovery point moves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from headrace.core.ports import Disk
from headrace.log import checkpoints, files

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class LeaderEpochs:
    """Invariant: epochs and start offsets both ascend strictly from entry to entry."""

    __slots__ = ("_disk", "_path", "entries", "unsynced")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self.entries: list[tuple[int, int]] = []
        self.unsynced = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def latest(self) -> int:
        return self.entries[-1][0] if self.entries else NO_EPOCH

    def load(self) -> bool:
        """Read the file. False when there is none or it is broken: the log must tell."""
        try:
            rows = checkpoints.parse_lines(files.read_all(self._disk, self._path))
            entries = [(int(epoch), int(start)) for epoch, start in rows]
        except (FileNotFoundError, checkpoints.CorruptCheckpoint, ValueError):
            return False
        for before, after in pairwise(entries):
            if before[0] >= after[0] or before[1] >= after[1]:
                return False
        self.entries = entries
        return True

    def write(self) -> None:
        lines = (f"{epoch} {start}" for epoch, start in self.entries)
        files.replace(self._disk, self._path, checkpoints.format_lines(lines), sync=False)
        self.unsynced = True

    def note(self, epoch: int, start_offset: int) -> bool:
        """Remember that `epoch` begins at `start_offset`, unless it is known. Does not write."""
        if epoch <= self.latest:
            return False
        while self.entries and self.entries[-1][1] >= start_offset:
            self.entries.pop()  # that epoch began but wrote nothing
        self.entries.append((epoch, start_offset))
        return True

    def assign(self, epoch: int, start_offset: int) -> None:
        before = list(self.entries)
        if self.note(epoch, start_offset):
            try:
                self.write()
            except OSError:
                self.entries = before  # or nobody would write it later
                raise

    def replace(self, entries: Iterable[tuple[int, int]]) -> None:
        self.entries = list(entries)
        self.write()

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and where it ended; (-1, -1) when that is not known."""
        if epoch == NO_EPOCH or not self.entries or epoch > self.latest:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end
        place = bisect_right(self.entries, epoch, key=_epoch)
        end = self.entries[place][1]
        return (epoch if place == 0 else self.entries[place - 1][0]), end

    def epoch_of(self, offset: int) -> int:
        place = bisect_right(self.entries, offset, key=_start)
        return self.entries[place - 1][0] if place else NO_EPOCH

    def forget_from(self, offset: int) -> None:
        """As `truncate_from_end`, of what is in memory alone: the next write says so."""
        self.entries = [entry for entry in self.entries if entry[1] < offset]

    def truncate_from_end(self, offset: int) -> None:
        """Forget the epochs that begin at `offset` or later."""
        kept = [entry for entry in self.entries if entry[1] < offset]
        if len(kept) != len(self.entries):
            self.replace(kept)

    def truncate_from_start(self, offset: int) -> None:
        """Forget what lies before `offset`; the epoch in force there now begins there."""
        place = bisect_right(self.entries, offset, key=_start) - 1
        if place >= 0 and (place > 0 or self.entries[0][1] < offset):
            self.replace([(self.entries[place][0], offset), *self.entries[place + 1 :]])

    def clear(self) -> None:
        if self.entries:
            self.replace(())


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _start(entry: tuple[int, int]) -> int:
    return entry[1]

"""How the segments of a log are walked while it is opened: with everything that is known of the log, and once
before anything is changed, to see that nothing is missing that must be there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.core.errors import CorruptLog
from headrace.log import files, scan
from headrace.log.leader_epochs import NO_EPOCH, LeaderEpochs
from headrace.log.segment import Segment
from headrace.log.segment_walk import SegmentFile, checked_walk


class RecoveryWalks:
    """`segments` is the list of whoever opens the log, and shrinks with it."""

    __slots__ = ("_epochs", "_foreign", "_jumps", "_recovery_point", "_segments", "last_epoch")

    def __init__(
        self,
        segments: Sequence[Segment],
        epochs: LeaderEpochs,
        jumps: Collection[tuple[int, int]],
        *,
        recovery_point: int,
        foreign: bool,
    ) -> None:
        self._segments = segments
        self._epochs = epochs
        self._jumps = jumps
        self._recovery_point = recovery_point
        self._foreign = foreign
        self.last_epoch = NO_EPOCH
        """Of the last batch that was walked over. The epochs' file may say otherwise: it has no checksum."""

    def begin(self, segment: Segment, size: int) -> scan.CheckedWalk:
        if self._foreign:
            return scan.CheckedWalk(
                segment.file(),
                0,
                size,
                segment.base_offset,
                highest=segment.highest_offset,
                epoch=self._epochs.epoch_of(segment.base_offset),
                jumps=self._jumps,
                least_epoch=self.last_epoch,
            )
        following = next((each for each in self._segments if each.base_offset > segment.base_offset), None)
        return checked_walk(
            _file_of(segment)._replace(size=size),
            None if following is None else _file_of(following),
            recovery_point=self._recovery_point,
            epochs=self._epochs,
            jumps=self._jumps,
            least_epoch=self.last_epoch,
        )

    def require_intact(self, segment: Segment) -> None:
        """Of a foreign log only the end of the last segment may be cut off."""
        walk = self.begin(segment, segment.size)
        for _ in walk:
            pass
        if walk.fault is not None:
            raise CorruptLog(
                f"{segment.path(files.LOG)}: position {walk.fault.position}: {walk.fault.reason}"
            )

    def require_promised(self, segment: Segment) -> None:
        """Walk without changing anything up to the recovery point: all of it must be there."""
        walk = self.begin(segment, segment.size)
        for _ in walk:
            if walk.next_offset >= self._recovery_point:
                break
        if walk.next_offset < self._recovery_point:
            reason = walk.fault.reason if walk.fault else "the file ends there"
            raise CorruptLog(
                f"{segment.path(files.LOG)}: everything below offset {self._recovery_point} had been synced, "
                f"but position {walk.position} (offset {walk.next_offset}) is wrong: {reason}. "
                "The files are left as they are; restore them from a replica or a backup"
            )


def _file_of(segment: Segment) -> SegmentFile:
    return SegmentFile(segment.file(), segment.size, segment.base_offset, segment.highest_offset)

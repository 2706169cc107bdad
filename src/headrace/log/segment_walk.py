"""How a segment of a log is walked batch by batch, with its checksums and its neighbours: by recovery, and by
whoever asks beforehand what recovery would say."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from headrace.log import scan
from headrace.log.leader_epochs import NO_EPOCH, LeaderEpochs
from headrace.protocol.batch import BatchHeader


class SegmentFile(NamedTuple):
    file: scan.Readable
    size: int
    base_offset: int
    highest_offset: int


def checked_walk(
    segment: SegmentFile,
    following: SegmentFile | None,
    *,
    recovery_point: int,
    epochs: LeaderEpochs,
    jumps: Collection[tuple[int, int]],
    least_epoch: int = NO_EPOCH,
) -> scan.CheckedWalk:
    """A gap before the last batch, as compaction leaves it, is confirmed by where the next one begins.

    Which epoch it begins in is known from the epochs' file, or else from the segments before. Epochs do
    not go down from one segment to the next either: who believes one that jumped ahead in the last batch
    of a segment tells good replicas that they have parted ways, and they cut off what is committed.
    """
    return scan.CheckedWalk(
        segment.file,
        0,
        segment.size,
        segment.base_offset,
        confirmed=max(recovery_point, following.base_offset if following else 0),
        highest=segment.highest_offset,
        epoch=epochs.epoch_of(segment.base_offset),
        jumps=jumps,
        least_epoch=least_epoch,
        behind=_first_whole(following) if following else None,
    )


def _first_whole(segment: SegmentFile) -> BatchHeader | None:
    """The first batch of a segment. None if there is none, or it is damaged: then it confirms nothing."""
    walk = scan.CheckedWalk(
        segment.file, 0, segment.size, segment.base_offset, highest=segment.highest_offset
    )
    return next((header for _, header, _ in walk), None)

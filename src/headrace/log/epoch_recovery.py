"""Whether the leader epochs that were read are true of the batches, and how they are told by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.log import scan
from headrace.log.leader_epochs import NO_EPOCH, LeaderEpochs
from headrace.log.segment import Segment
from headrace.protocol.batch import HEADER_SIZE, read_header


class Located(Protocol):
    """A segment, as far as it is asked for its epochs."""

    base_offset: int
    size: int

    def locate(self, offset: int) -> scan.FoundBatch | None: ...
    def file(self) -> scan.Readable: ...


def agree(epochs: LeaderEpochs, segments: Sequence[Located], start: int, end: int) -> bool:
    """Whether the epochs that were read are true of the batches: the file has no checksum."""
    entries = epochs.entries
    if not entries:
        return start == end
    before = NO_EPOCH
    for epoch, begins in entries:
        at = max(begins, start)
        if at >= end:
            if begins != end or (epoch, begins) != entries[-1]:
                return False
            break  # it has just begun
        if begins >= start and not _is_told(epochs, segments, at):
            return False
        # Nor may one be left out, which would make others cut off what was written in it.
        latest = epoch - 1 if before == NO_EPOCH else before
        if begins > start and _epoch_at(segments, begins - 1, exactly=True)[1] > latest:
            return False
        before = epoch
    bases = [segment.base_offset for segment in segments[1:] if segment.size]
    return all(_is_told(epochs, segments, max(at, start)) for at in (start, *bases, end - 1))


def _is_told(epochs: LeaderEpochs, segments: Sequence[Located], offset: int) -> bool:
    """Whether the epochs know that of the first batch from `offset` on. Of an epoch whose batches were
    all compacted away nothing but its entry is left, so it may be a later one."""
    begins, epoch = _epoch_at(segments, offset)
    return epoch == NO_EPOCH or epochs.epoch_of(max(begins, offset)) == epoch


def _epoch_at(segments: Sequence[Located], offset: int, *, exactly: bool = False) -> tuple[int, int]:
    """(first offset, epoch) of the batch that holds `offset`, or else of the next one in its segment."""
    segment = next((each for each in reversed(segments) if each.base_offset <= offset), segments[0])
    found = segment.locate(offset) if segment.size else None
    if found is None or (exactly and found.base_offset > offset):
        return offset, NO_EPOCH
    header = read_header(segment.file().pread(HEADER_SIZE, found.position))
    return found.base_offset, header.leader_epoch


def rebuild(epochs: LeaderEpochs, segments: Sequence[Segment]) -> None:
    epochs.entries = []
    for segment in segments:
        for _, header in scan.headers(segment.file(), 0, segment.size):
            epochs.note(header.leader_epoch, header.base_offset)
    epochs.write()

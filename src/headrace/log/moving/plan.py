"""What a log holds at one moment, for whoever copies it: noted on the loop, read by a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.log.directory import LogDirectory
from headrace.log.manifest import Sealed
from headrace.log.partition_log import PartitionLog
from headrace.log.segment import Segment


class Source(NamedTuple):
    segment: Segment
    """Only to tell whether a copy is of this one: compaction puts another in its place."""
    base_offset: int
    next_offset: int
    """Where the next segment begins, or the log ends."""
    size: int
    is_active: bool
    is_vouched: bool
    """Not in doubt (rule 13)."""


class CopyPlan(NamedTuple):
    partition: TopicPartition
    topic_id: UUID
    directory: LogDirectory
    folder: str
    log_start_offset: int
    end_offset: int
    truncations: int
    sources: tuple[Source, ...]
    """Without those that lie before the log start: retention is about to remove them."""
    snapshots: tuple[int, ...]
    listed: Mapping[int, Sealed]
    """What the manifest says of sealed segments."""
    epoch_of: Callable[[int], int]

    @property
    def size(self) -> int:
        return sum(source.size for source in self.sources)


def take_plan(log: PartitionLog) -> CopyPlan:
    ends = [*(segment.base_offset for segment in log.segments[1:]), log.end_offset]
    active = log.active_segment
    sources = tuple(
        Source(segment, segment.base_offset, end, segment.size, segment is active, segment.is_vouched)
        for segment, end in zip(log.segments, ends, strict=True)
        if segment is active or end > log.log_start_offset
    )
    first = sources[0].base_offset
    before = [offset for offset in log.folder.snapshot_offsets if offset <= first][-1:]
    later = [offset for offset in log.folder.snapshot_offsets if offset > first]
    return CopyPlan(
        log.topic_partition,
        log.topic_id,
        log.directory,
        log.path,
        log.log_start_offset,
        log.end_offset,
        log.truncations,
        sources,
        (*before, *later),
        {each.base_offset: each for each in log.manifest.contents.sealed},
        log.epochs.epoch_of,
    )

"""The manifest of a partition in the store: which offsets are there, in which objects. It is the truth.

Values that never change: a change is a new manifest, which is written under the condition that nobody has
written since the old one was read. Each is unlike every other, by its writer and the writer's count, so that
a store that compares contents can tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from headrace.tier.names import Folder, ObjectName, TieredPartition
from headrace.tier.segments import (
    EpochStart,
    Misfit,
    PageRef,
    RemoteSegment,
    check_order,
    check_range,
    merged_epochs,
)


class Removed(NamedTuple):
    """An object that nobody finds by the manifest any more, and that some may still read."""

    name: ObjectName
    at_ms: int


class Origin(NamedTuple):
    """The topic that this one is a fork of."""

    topic_id: UUID
    until: int
    """What begins before this offset lies in the origin's folder, and is the origin's to delete."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Invariant: what it names begins at or before `start`, has no gap and no overlap, and goes on to
    `next_offset`; epochs ascend along it up to the writer's, `epoch`."""

    partition: TieredPartition
    epoch: int
    """Of the leader that wrote this. It never falls."""
    writer: UUID
    """Drawn by each process and each leadership anew."""
    change: int
    """One more than in the manifest before."""
    start: int
    """What is before this was deleted, by retention or by DeleteRecords."""
    oldest: tuple[RemoteSegment, ...] = ()
    """What was taken out of the first page, because retention has come so far."""
    pages: tuple[PageRef, ...] = ()
    segments: tuple[RemoteSegment, ...] = ()
    removed: tuple[Removed, ...] = ()
    deleted_ms: int | None = None
    """When the topic was found to be deleted. Nothing but collecting follows."""
    origin: Origin | None = None

    @property
    def is_deleted(self) -> bool:
        return self.deleted_ms is not None

    @property
    def ranges(self) -> tuple[RemoteSegment | PageRef, ...]:
        """All of it, in order."""
        return (*self.oldest, *self.pages, *self.segments)

    @property
    def next_offset(self) -> int:
        """Where it ends: the next segment begins here. Its start if it names nothing."""
        ranges = self.ranges
        return ranges[-1].next_offset if ranges else self.start

    @property
    def size(self) -> int:
        """Bytes of records, each counted once."""
        return sum(each.size for each in self.ranges)

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        return merged_epochs(self.ranges)

    @property
    def named(self) -> tuple[ObjectName, ...]:
        """Objects that are named here: not those that pages list."""
        return tuple(each.name for each in self.ranges)

    def readable(self, folder: Folder) -> Folder:
        """Where the objects are that it names: also those of its origin."""
        return folder if self.origin is None else folder.over(*self.origin)

    @property
    def first_shared(self) -> int | None:
        """Where the first object begins of those that it has from its origin and still names, or has given up
        only a moment ago. None if there is none left."""
        if self.origin is None:
            return None
        bases = [each.name.base_offset for each in (*self.ranges[:1], *self.removed)]
        return min((base for base in bases if base < self.origin.until), default=None)

    def is_by(self, other: Manifest) -> bool:
        """Whether this is that very write."""
        return (self.writer, self.change) == (other.writer, other.change)

    def check(self) -> None:
        """Misfit if it contradicts itself."""
        ranges = self.ranges
        for each in ranges:
            check_range(each)
        check_order(ranges)
        if ranges and not ranges[0].base_offset <= self.start <= ranges[-1].next_offset:
            raise Misfit(f"the start {self.start} is outside of what is there")
        if ranges and self.start >= ranges[0].next_offset:
            raise Misfit(f"{ranges[0].name} lies before the start {self.start}")
        if self.start < 0 or self.change < 0 or self.epoch < 0:
            raise Misfit("a number is negative")
        if any(each.name.leader_epoch > self.epoch for each in (*ranges, *self.removed)):
            raise Misfit(f"an object is of a leader after epoch {self.epoch}")
        names = [each.name for each in (*ranges, *self.removed)]
        if len(set(names)) != len(names):
            raise Misfit("an object is named twice")

    # --- changes: each of them one write ---------------------------------------------------------------

    def following(self, epoch: int, writer: UUID) -> Manifest:
        """The same, as the next write of this writer."""
        return replace(self, epoch=epoch, writer=writer, change=self.change + 1)

    def with_segment(self, segment: RemoteSegment) -> Manifest:
        """Misfit if it does not follow what is there."""
        if segment.next_offset <= self.start:
            raise Misfit(f"{segment.name} lies before the start {self.start}")
        if not self.ranges and segment.base_offset > self.start:
            raise Misfit(f"{segment.name} leaves a gap after the start {self.start}")
        added = replace(self, segments=(*self.segments, segment))
        added.check()
        return added

    def with_start(self, offset: int, now_ms: int) -> Manifest:
        """Nothing before `offset` is there any more. The first page must have been unfolded if `offset` lies
        behind where it begins: otherwise Misfit, since what it lists could not be named as removed."""
        if offset <= self.start:
            return self
        if self.pages and offset > self.pages[0].base_offset:
            raise Misfit(f"{self.pages[0].name} lists segments before {offset}")
        gone = [each for each in (*self.oldest, *self.segments) if each.next_offset <= offset]
        return replace(
            self,
            start=offset,
            oldest=tuple(each for each in self.oldest if each.next_offset > offset),
            segments=tuple(each for each in self.segments if each.next_offset > offset),
            removed=(*self.removed, *(Removed(each.name, now_ms) for each in gone)),
        )

    def emptied(self, offset: int, now_ms: int) -> Manifest:
        """Nothing is there any more, and what comes next begins at `offset` or later. No page may be left."""
        if self.pages:
            raise Misfit(f"{self.pages[0].name} lists segments that could not be named as removed")
        gone = [Removed(each.name, now_ms) for each in (*self.oldest, *self.segments)]
        start = max(self.start, offset)
        return replace(self, start=start, oldest=(), segments=(), removed=(*self.removed, *gone))

    def folded(self, page: PageRef) -> Manifest:
        """The first segments are listed by a page from now on."""
        if [each.base_offset for each in self.segments[:1]] != [page.base_offset]:
            raise Misfit(f"{page.name} does not begin where the segments do")
        if self.segments[page.segment_count - 1].next_offset != page.next_offset:
            raise Misfit(f"{page.name} does not end where its last segment does")
        folded = replace(self, pages=(*self.pages, page), segments=self.segments[page.segment_count :])
        folded.check()
        return folded

    def unfolded(self, listed: Sequence[RemoteSegment], now_ms: int) -> Manifest:
        """What the first page lists is named here again; segments before the start go at once."""
        page = self.pages[0]
        kept = tuple(each for each in listed if each.next_offset > self.start)
        gone = [Removed(each.name, now_ms) for each in listed if each.next_offset <= self.start]
        unfolded = replace(
            self,
            oldest=(*self.oldest, *kept),
            pages=self.pages[1:],
            removed=(*self.removed, *gone, Removed(page.name, now_ms)),
        )
        unfolded.check()
        return unfolded

    def without_removed(self, names: Iterable[ObjectName]) -> Manifest:
        """They are deleted."""
        gone = set(names)
        return replace(self, removed=tuple(each for each in self.removed if each.name not in gone))


def first_manifest(partition: TieredPartition, epoch: int, writer: UUID, start: int) -> Manifest:
    """Of a partition of which nothing is in the store."""
    return Manifest(partition, epoch, writer, 1, start)

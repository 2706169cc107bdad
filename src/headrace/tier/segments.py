"""What a manifest says of a segment in the store, and of a page of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from headrace.tier.names import ObjectName

NO_TIMESTAMP: Final = -1


class EpochStart(NamedTuple):
    """From this offset on, records are of this leader epoch."""

    epoch: int
    offset: int


class Misfit(ValueError):
    """What cannot be true of one manifest together."""


class Stored(NamedTuple):
    """One object as it was written."""

    size: int
    crc32c: int


class RemoteSegment(NamedTuple):
    name: ObjectName
    next_offset: int
    """Where the next segment begins."""
    records: Stored
    indexes: Stored
    max_timestamp: int
    epochs: tuple[EpochStart, ...]
    """Of its records: the first begins where the segment does."""

    @property
    def base_offset(self) -> int:
        return self.name.base_offset

    @property
    def size(self) -> int:
        """As it counts for retention: the bytes of the log."""
        return self.records.size


class PageRef(NamedTuple):
    """Many segments, listed in an object of their own that never changes."""

    name: ObjectName
    next_offset: int
    segment_count: int
    size: int
    """Of the records of all its segments."""
    max_timestamp: int
    epochs: tuple[EpochStart, ...]
    content: Stored

    @property
    def base_offset(self) -> int:
        return self.name.base_offset


class _Range(Protocol):
    @property
    def base_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def name(self) -> ObjectName: ...
    @property
    def epochs(self) -> tuple[EpochStart, ...]: ...


def check_range(each: _Range) -> None:
    """Misfit if it contradicts itself."""
    if not 0 <= each.base_offset < each.next_offset:
        raise Misfit(f"{each.name} ends at {each.next_offset}")
    if not each.epochs or each.epochs[0].offset != each.base_offset:
        raise Misfit(f"{each.name} does not say in which epoch it begins")
    for before, after in pairwise(each.epochs):
        if before.epoch >= after.epoch or before.offset >= after.offset:
            raise Misfit(f"{each.name} has epochs that do not ascend")
    if each.epochs[-1].offset >= each.next_offset or each.epochs[0].epoch < 0:
        raise Misfit(f"{each.name} has an epoch that is not its own")
    if each.epochs[-1].epoch > each.name.leader_epoch:
        raise Misfit(f"{each.name} has records of an epoch that came after it")


def check_order(ranges: Sequence[_Range]) -> None:
    """Misfit unless each begins where the one before it ends, in the same epoch or a later one."""
    for before, after in pairwise(ranges):
        if after.base_offset != before.next_offset:
            raise Misfit(f"{after.name} does not follow what ends at {before.next_offset}")
        if after.epochs[0].epoch < before.epochs[-1].epoch:
            raise Misfit(f"{after.name} begins in an epoch before the one that it follows")


def merged_epochs(ranges: Iterable[_Range]) -> tuple[EpochStart, ...]:
    """Of ranges that follow each other: where each epoch begins in them."""
    found: list[EpochStart] = []
    for each in ranges:
        found += [start for start in each.epochs if not found or start.epoch > found[-1].epoch]
    return tuple(found)


def page_of(name: ObjectName, segments: Sequence[RemoteSegment], content: Stored) -> PageRef:
    return PageRef(
        name,
        segments[-1].next_offset,
        len(segments),
        sum(each.size for each in segments),
        max(each.max_timestamp for each in segments),
        merged_epochs(segments),
        content,
    )

"""What a sink reads next: bounds in each partition. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from headrace.connect.api import GiveUp
from headrace.core.ids import TopicPartition


class Bounds(NamedTuple):
    first: int
    """The oldest record that is there."""
    end: int
    """Behind the last one that may be read."""


def starts(
    bounds: Mapping[TopicPartition, Bounds],
    target: Mapping[TopicPartition, int],
    group: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Where to go on: as the target says, else as the group says, else from the oldest record.

    Raises GiveUp if records have gone that were not read.
    """
    found = {}
    for partition, there in bounds.items():
        known = target.get(partition, group.get(partition))
        if known is not None:
            check_there(partition, known, there)
        found[partition] = there.first if known is None else known
    return found


def check_there(partition: TopicPartition, position: int, there: Bounds) -> None:
    """Raises GiveUp: a topic that was made anew grows past the position, and what is before it would be
    passed over."""
    stop = "Stop the connector, set its offsets (PATCH /connectors/NAME/offsets) and resume it to go on"
    if position < there.first:
        raise GiveUp(
            f"{partition} begins at {there.first}: {there.first - position} offsets from {position} on are "
            f"gone and were not read. {stop}"
        )
    if position > there.end:
        raise GiveUp(
            f"{partition} ends at {there.end}, before the position {position}: was the topic deleted and "
            f"made anew? {stop}"
        )


_MARK: Final = "headrace-connect "
"""Begins what is kept beside a group's offset."""


def mark_of(topic_id: UUID) -> str:
    return f"{_MARK}{topic_id}"


def check_same(topic: str, kept: str, now: str) -> None:
    """Whether the offset that was kept with a mark is one of the topic as it is now. Raises GiveUp."""
    if kept.startswith(_MARK) and kept != now:
        raise GiveUp(
            f"topic {topic} was deleted and made anew since this connector read it, so its offsets there "
            "mean nothing now. Stop the connector, set its offsets (PATCH /connectors/NAME/offsets) or "
            "DELETE them, and resume it to go on"
        )


def next_ranges(
    positions: Mapping[TopicPartition, int], bounds: Mapping[TopicPartition, Bounds], most: int
) -> dict[TopicPartition, tuple[int, int]]:
    """(first, end) of each partition with something new, about `most` offsets in all, evenly."""
    new = {
        partition: there.end - positions[partition]
        for partition, there in bounds.items()
        if there.end > positions[partition]
    }
    ranges = {}
    left, waiting = most, len(new)
    # Who has least first: what it does not need goes to the others.
    for partition, count in sorted(new.items(), key=lambda each: (each[1], each[0])):
        taken = min(count, max(1, left // waiting))
        ranges[partition] = (positions[partition], positions[partition] + taken)
        left, waiting = left - taken, waiting - 1
    return ranges


class Linger:
    """Whether a batch is taken now. One that is not full waits for more, for so long after its first record
    was seen: for targets where many small batches are worse than late ones."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def is_over(self, ranges: Mapping[TopicPartition, tuple[int, int]], most: int, now: float) -> bool:
        """False where there is nothing. Once it is over it begins anew."""
        if not ranges:
            return False
        if self._since is None:
            self._since = now
        is_full = sum(end - first for first, end in ranges.values()) >= most
        if not is_full and now - self._since < self._seconds:
            return False
        self._since = None
        return True

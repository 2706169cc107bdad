"""Whether the ends of partitions have stopped to move. Pure: the caller has the clock."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.core.ids import TopicPartition

Ends = Mapping[TopicPartition, int]


class Standing:
    def __init__(self) -> None:
        self.ends: Ends | None = None
        self.since = 0.0
        """When they were first seen as they are now."""

    def look(self, ends: Ends, now: float) -> bool:
        """Whether they have moved since the last look."""
        moved = self.ends != ends
        if moved:
            self.ends, self.since = dict(ends), now
        return moved

    def seconds(self, now: float) -> float:
        return 0.0 if self.ends is None else now - self.since


def behind(here: Ends, there: Ends) -> dict[TopicPartition, int]:
    """How many records each partition lacks here; a partition that is not here at all lacks one more than it
    has, so that an empty one counts."""
    lacking = {}
    for partition, end in there.items():
        own = here.get(partition, -1)
        if own < end:
            lacking[partition] = end - own
    return lacking

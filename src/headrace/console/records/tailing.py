"""What comes into a topic, as it comes: at most so many records a second, and how many the others were.

Each turn asks where the partitions end and reads the newest of what is new. So a topic with a million records
a second costs brokers, console and browser what a quiet one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.offsets import ends_of, list_offsets
from headrace.console.records.reading import places_of
from headrace.console.records.search import Wanted, newest_positions, to_read, written
from headrace.console.records.step import Budget, Step
from headrace.console.records.texts import Decoding, Row
from headrace.core.ids import TopicPartition

TURN_SECONDS: Final = 1.0
"""From the begin of a turn to that of the next."""
ROWS: Final = 20
"""That a turn shows."""
LOOKED_AT: Final = 2000
"""Records that a turn of a search looks at, so that its filter costs no more than a fraction of a second."""
TURN_BUDGET: Final = Budget(TURN_SECONDS, 4 * 1024 * 1024, ROWS)

Positions = Mapping[TopicPartition, int]


class Turn(NamedTuple):
    rows: list[Row]
    """The newest first."""
    left_out: int
    """Offsets that nobody has looked at, or that were looked at and are not shown for want of room."""
    too_large: int
    """Records that a filter did not look into."""
    positions: str
    """Where the next turn goes on, as an address has it."""

    @property
    def is_quiet(self) -> bool:
        return not self.rows and not self.left_out and not self.too_large


class Tail:
    def __init__(self, topic: str, asked: Wanted) -> None:
        """Raises Refused for a filter that is none."""
        self._topic = topic
        self._asked = asked
        asked.compiled()
        self._positions: dict[TopicPartition, int] = {
            TopicPartition(topic, partition): offset for partition, offset in asked.after.items()
        }

    async def turn(self, cluster: Cluster, decoding: Decoding | None = None) -> Turn:
        """Raises Refused and ClientFailure; then the next turn goes on where this one began."""
        places = await places_of(cluster, self._topic, self._asked)
        bounds = await ends_of(cluster, places)
        stable = await list_offsets(cluster, dict.fromkeys(places, -1), read_committed=True)
        until = {place: stable[place].offset for place in places}
        new = what_is_new(self._positions, {place: (bounds[place][0], until[place]) for place in places})
        begin = newest_positions(new, LOOKED_AT if self._asked.is_search else ROWS)
        left_out = sum(end - first for first, end in new.values()) - to_read(begin, until)
        step = Step(self._topic, self._asked, until, decoding, TURN_BUDGET)
        await step.run(cluster, begin)
        rows = sorted(step.rows, key=lambda each: (-each.timestamp_ms, each.partition, -each.offset))
        shown = rows[:ROWS]
        self._positions = {place: step.positions.get(place, end) for place, end in until.items()}
        left_out += len(rows) - len(shown)
        return Turn(shown, left_out, step.too_large, written(self._positions))


def what_is_new(
    positions: Positions, bounds: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, tuple[int, int]]:
    """From where to where, in each partition. Partitions that come later are read from their begin; one that
    became shorter, or is a new one of the same name, from its end."""
    return {
        place: (min(max(positions.get(place, first if positions else end), first), end), max(first, end))
        for place, (first, end) in bounds.items()
    }

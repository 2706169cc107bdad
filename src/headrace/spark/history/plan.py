"""Which offsets of a topic come from where: the lake's table, the bucket, the brokers. Pure.

The table has what its checkpoint says was loaded, and not what its largest offset says: the last records may
be dead letters, or of a transaction that was given up. What follows comes from the bucket as far as that
goes, since it costs the brokers nothing, and then from the brokers. So each offset has one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.core.errors import HeadraceError

TABLE: Final = "table"
TIER: Final = "tier"
LOG: Final = "log"
_NAMED: Final = 5


class HistoryRefused(HeadraceError):
    """The parts do not fit together; says what to do."""


class Range(NamedTuple):
    """Offsets from `first` to before `end`."""

    first: int
    end: int

    def has(self, offset: int) -> bool:
        return self.first <= offset < self.end


EMPTY: Final = Range(0, 0)


class Share(NamedTuple):
    place: str
    first: int
    end: int


class View(NamedTuple):
    """What there is of a topic, by partition."""

    log: Mapping[int, Range]
    """As the brokers tell it, which read what is only in the bucket as well."""
    tier: Mapping[int, Range] = {}
    table: Mapping[int, Range] = {}
    """What was loaded, by the checkpoint."""


class Whole(NamedTuple):
    """Of each partition the shares, which follow each other without a gap, and where the log ends."""

    shares: Mapping[int, Sequence[Share]]
    ends: Mapping[int, int]

    def of(self, place: str) -> dict[int, list[Range]]:
        found = {
            partition: [Range(each.first, each.end) for each in shares if each.place == place]
            for partition, shares in self.shares.items()
        }
        return {partition: ranges for partition, ranges in found.items() if ranges}


def share(topic: str, view: View) -> Whole:
    """Raises HistoryRefused where records are nowhere, or the table is of another topic."""
    found, problems = {}, []
    for partition, log in sorted(view.log.items()):
        table, tier = view.table.get(partition, EMPTY), view.tier.get(partition, EMPTY)
        begin = min(log.first, table.first) if table.first < table.end else log.first
        if table.end > log.end:
            problems.append(
                f"partition {partition} ends at {log.end}, and the table has it up to {table.end}"
            )
            continue
        found[partition] = _cover(begin, log.end, ((TABLE, table), (TIER, tier), (LOG, log)))
        reached = found[partition][-1].end if found[partition] else begin
        if reached < log.end:
            problems.append(f"of partition {partition}, offsets from {reached} on are gone")
    if problems:
        named = [*problems[:_NAMED], *([f"{len(problems) - _NAMED} more"] if len(problems) > _NAMED else [])]
        raise HistoryRefused(
            f"table and log of {topic} do not meet: {'; '.join(named)}. Was the topic made anew, or did "
            "retention remove records before `headrace lake run` had loaded them? read_topic has what the "
            "brokers still have"
        )
    return Whole(found, {partition: log.end for partition, log in view.log.items()})


def _cover(at: int, end: int, places: Sequence[tuple[str, Range]]) -> list[Share]:
    """From `at` on, each offset from the first place that has it; it ends at one that none has."""
    found: list[Share] = []
    while at < end:
        number = next((number for number, (_, span) in enumerate(places) if span.has(at)), None)
        if number is None:
            break
        name, span = places[number]
        better = (other.first for _, other in places[:number] if at < other.first < other.end)
        found.append(Share(name, at, min(span.end, end, *better)))
        at = found[-1].end
    return found

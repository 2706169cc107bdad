"""Which records of a topic somebody has chosen: as a form sends them, and as a person writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from headrace.client.errors import ClientFailure

MOST: Final = 1000
MOST_RANGES: Final = 100
"""Each is read by itself."""
LONGEST: Final = 64 * 1024
_ITEM: Final = re.compile(r"(\d{1,9}):(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


class Range(NamedTuple):
    partition: int
    first: int
    last: int


class Chosen(NamedTuple):
    ranges: tuple[Range, ...]
    """Sorted; none touches another."""

    @property
    def whole(self) -> int:
        return sum(each.last - each.first + 1 for each in self.ranges)

    @property
    def text(self) -> str:
        """3:17-20, 4:1"""
        return ", ".join(
            f"{each.partition}:{each.first}" + (f"-{each.last}" if each.last > each.first else "")
            for each in self.ranges
        )


def chosen_in(text: str) -> Chosen:
    """Raises ClientFailure."""
    if len(text) > LONGEST:
        raise ClientFailure(
            "the list of chosen records is too long", f"{MOST:,} records are the most at once"
        )
    found = []
    for item in filter(None, re.split(r"[\s,]+", text)):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ClientFailure(
                f"{item[:40]!r} is no record",
                "write PARTITION:OFFSET or PARTITION:FIRST-LAST, as in 0:12, 3:17-20",
            )
        first = int(match[2])
        last = first if match[3] is None else int(match[3])
        if last < first:
            raise ClientFailure(f"{item} ends before it begins", "write the smaller offset first")
        found.append(Range(int(match[1]), first, last))
    chosen = Chosen(tuple(_joined(sorted(found))))
    if not chosen.ranges:
        raise ClientFailure("no record is chosen", "choose records on the page of the topic's records")
    if chosen.whole > MOST or len(chosen.ranges) > MOST_RANGES:
        raise ClientFailure(
            f"{chosen.whole:,} records in {len(chosen.ranges):,} places are chosen",
            f"{MOST:,} records in {MOST_RANGES} places are the most at once",
        )
    return chosen


def _joined(ranges: Iterable[Range]) -> list[Range]:
    found: list[Range] = []
    for each in ranges:
        if found and found[-1].partition == each.partition and each.first <= found[-1].last + 1:
            found[-1] = found[-1]._replace(last=max(found[-1].last, each.last))
        else:
            found.append(each)
    return found

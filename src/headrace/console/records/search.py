"""What is looked for in a topic, and how far a search is: all of it stands in the address of the page.

So a search can be stopped by not going on, gone on with by anybody, and nothing is kept for it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from headrace.console.pages.page import Query, number_in
from headrace.console.records.filters import Filter, FilterRefused
from headrace.core.ids import TopicPartition

BEGINNINGS: Final = ("newest", "oldest", "offset", "time")
LONGEST_KEY: Final = 4096


class Refused(Exception):
    """Of what was asked for; says why."""


class Wanted(NamedTuple):
    partition: int | None
    """None: all of them."""
    begin: str
    value: str
    """The offset or the time, as it was written."""
    key: str
    filter: str
    after: Mapping[int, int]
    """Where to go on in each partition; empty for a search that begins."""
    done: int
    """Offsets that earlier steps have looked at."""
    whole: int
    """That there were to look at when it began."""
    everywhere: bool
    """A key is looked for in every partition."""
    live: bool = False
    """What comes is shown as it comes."""

    @property
    def begins_live(self) -> bool:
        """A search in what comes: what is there already does not count."""
        return self.live and self.is_search and not self.after

    @property
    def is_search(self) -> bool:
        return bool(self.key or self.filter)

    def compiled(self) -> Filter | None:
        """Raises Refused."""
        if not self.filter:
            return None
        try:
            return Filter(self.filter)
        except FilterRefused as error:
            raise Refused(f"The filter is refused: {error}.") from None


def wanted(query: Query) -> Wanted:
    """Raises Refused."""
    is_live = query.get("live") == "1"
    begin = "newest" if is_live else query.get("from", "newest")
    text = query.get("partition", "").strip()
    if text and not text.isdecimal():
        raise Refused(f"{text} is no number of a partition.")
    key = query.get("key", "")
    if len(key) > LONGEST_KEY:
        raise Refused(f"The key is longer than {LONGEST_KEY} characters.")
    return Wanted(
        int(text[:9]) if text else None,
        begin if begin in BEGINNINGS else "newest",
        query.get("value", "").strip(),
        key,
        query.get("filter", "").strip(),
        positions(query.get("after", "")),
        number_in(query, "done", 0),
        number_in(query, "whole", 0),
        query.get("everywhere") == "1",
        is_live,
    )


def positions(text: str) -> dict[int, int]:
    """0:123,1:456"""
    found = {}
    for item in text.split(",")[:10_000] if text else ():
        partition, colon, offset = item.partition(":")
        if colon and partition.isdecimal() and offset.isdecimal() and len(item) < 40:
            found[int(partition)] = int(offset)
    return found


def written(places: Mapping[TopicPartition, int]) -> str:
    return ",".join(f"{place.partition}:{offset}" for place, offset in sorted(places.items()))


def offset_in(value: str) -> int:
    """Raises Refused."""
    if not value.isascii() or not value.isdecimal() or len(value) > 18:
        raise Refused("Write an offset as a number, for instance 1200.")
    return int(value)


def moment_in(value: str) -> int:
    """Milliseconds since 1970 of a number or an ISO date, in UTC unless it says otherwise. Raises Refused."""
    if value.isascii() and value.isdecimal() and 0 < len(value) < 16:
        return int(value)
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise Refused("Write a time as 2026-11-18T12:00, in UTC, or in milliseconds since 1970.") from None
    moment_ms = int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    return max(0, moment_ms)  # for brokers a number below zero is no time, but asks for an end


def newest_positions(
    ends: Mapping[TopicPartition, tuple[int, int]], records: int
) -> dict[TopicPartition, int]:
    """From where to read so that at least so many offsets are seen, as evenly as the partitions have them."""
    left, share = records, 0
    lengths = sorted((end - first for first, end in ends.values() if end > first))
    for at, length in enumerate(lengths):
        share = -(-left // (len(lengths) - at))
        if length >= share:
            break
        left -= length
    return {place: max(first, end - share) for place, (first, end) in ends.items() if end > first}


def to_read(places: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    return sum(max(0, ends[place] - offset) for place, offset in places.items())


def bounds(first_ms: int, last_ms: int, buckets: int) -> Sequence[int]:
    """Where each bucket of a time line begins."""
    length = max(1, last_ms - first_ms)
    return [first_ms + length * at // buckets for at in range(buckets)]

"""Counts with checksums, and where they belong: a topic, a partition, and a window of event time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


class Cell(NamedTuple):
    """Windows are named by their first millisecond, in UTC. All windows of an audit have one length."""

    topic: str
    partition: int
    window_ms: int


def window_of(timestamp_ms: int, length_ms: int) -> int:
    """The first millisecond of the window; of times before 1970 too."""
    return timestamp_ms - timestamp_ms % length_ms


@dataclass(frozen=True, slots=True)
class Tally:
    """How many records, and the sum of their hashes modulo 2^64 in each lane."""

    count: int = 0
    a: int = 0
    b: int = 0

    def plus(self, other: Tally) -> Tally:
        return Tally(self.count + other.count, (self.a + other.a) & _MASK, (self.b + other.b) & _MASK)

    @property
    def checksum(self) -> str:
        return f"{self.a:016x}{self.b:016x}"

    @classmethod
    def parse(cls, count: int, checksum: str) -> Tally:
        if len(checksum) != 32:
            raise ValueError(f"{checksum!r} is not a checksum: 32 hexadecimal digits are")
        return cls(count, int(checksum[:16], 16), int(checksum[16:], 16))


NOTHING: Final = Tally()


def total(tallies: Iterable[Tally]) -> Tally:
    result = NOTHING
    for each in tallies:
        result = result.plus(each)
    return result

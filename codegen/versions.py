"""Ranges of versions, as definitions write them: `3`, `0-4`, `2+`, `none`."""

from __future__ import annotations

from typing import NamedTuple

OPEN = 1 << 15


class Versions(NamedTuple):
    low: int
    high: int

    @staticmethod
    def parse(text: str) -> Versions:
        text = text.strip()
        if text == "none":
            return NONE
        if text.endswith("+"):
            return Versions(int(text[:-1]), OPEN)
        low, _, high = text.partition("-")
        return Versions(int(low), int(high or low))

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.low, other.low), min(self.high, other.high))
        return both if both.low <= both.high else NONE

    def union(self, other: Versions) -> Versions:
        """The smallest range with both. The generator never needs one with a hole."""
        if self == NONE or other == NONE:
            return other if self == NONE else self
        return Versions(min(self.low, other.low), max(self.high, other.high))

    def has(self, version: int) -> bool:
        return self.low <= version <= self.high

    def each(self) -> range:
        return range(self.low, self.high + 1)

    def condition(self, within: Versions) -> str:
        """Python for `version is in this range`, given that it is in `within`; empty if that is certain."""
        from_low = self.low <= within.low
        to_high = self.high >= within.high
        if from_low and to_high:
            return ""
        if from_low:
            return f"version <= {self.high}"
        if to_high:
            return f"version >= {self.low}"
        if self.low == self.high:
            return f"version == {self.low}"
        return f"{self.low} <= version <= {self.high}"


NONE = Versions(1, 0)

"""How much of the processors a shared host took away: what a failure, or a slow run, is read with."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_STAT = Path("/proc/stat")
_STOLEN = 7
"""Of the numbers after `cpu`. Those behind it are counted in others already."""


class Processors(NamedTuple):
    stolen: int
    whole: int

    @classmethod
    def now(cls) -> Processors:
        if not _STAT.exists():
            return cls(0, 0)
        first, *_ = _STAT.read_text().splitlines()
        ticks = [int(field) for field in first.split()[1 : _STOLEN + 2]]
        return cls(ticks[_STOLEN], sum(ticks))

    def stolen_since(self, before: Processors) -> float:
        """The share of all processors' time."""
        whole = self.whole - before.whole
        return (self.stolen - before.stolen) / whole if whole else 0.0

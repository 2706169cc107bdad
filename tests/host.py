"""How much of the processors a shared host took away: what a failure, or a slow run, is read with."""

from __future__ import annotations

import os
import time
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


class Stopwatch:
    """Runs from when it was made, without what the host took: a promise of seconds is about those that the
    machine had. What was taken of any processor counts, since any may have been waited for.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._processors = Processors.now()

    @property
    def taken(self) -> float:
        return (Processors.now().stolen - self._processors.stolen) / os.sysconf("SC_CLK_TCK")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began - self.taken

"""Where a streaming query is, read from the two logs of its checkpoint: what was planned, what is over."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_OFFSETS: Final = "offsets"
_COMMITS: Final = "commits"
#: How long a batch takes as long as none has been seen.
_UNKNOWN_SECONDS: Final = 2.0


class Batches(NamedTuple):
    """All queries of a job together."""

    planned: int = 0
    over: int = 0
    seconds: float = _UNKNOWN_SECONDS
    """What a batch usually takes."""

    @property
    def in_flight(self) -> bool:
        return self.planned > self.over


def look(directory: Path) -> Batches:
    """Checkpoints may be anywhere below the directory."""
    planned = over = 0
    took: list[float] = []
    for checkpoint in _checkpoints(directory):
        ends = _entries(checkpoint / _COMMITS)
        begins = _entries(checkpoint / _OFFSETS)
        planned += len(begins)
        over += len(begins.keys() & ends.keys())
        took += [ends[batch] - begins[batch] for batch in begins.keys() & ends.keys()]
    return Batches(planned, over, statistics.median(took) if took else _UNKNOWN_SECONDS)


def _checkpoints(directory: Path) -> Iterator[Path]:
    # Unlike rglob, walk passes over a directory that goes while it is looked at, as staged files do.
    for path, below, files in os.walk(directory):
        # A table could have a directory of this name; a checkpoint says whose it is.
        if _OFFSETS in below and "metadata" in files:
            yield Path(path)


def _entries(log: Path) -> dict[int, float]:
    """Batch and the time of its entry. A file whose name is not a number is a half-written one."""
    found = {}
    for path in log.glob("*"):
        if path.name.isdigit():
            try:
                found[int(path.name)] = path.stat().st_mtime
            except FileNotFoundError:
                continue  # old entries are purged
    return found

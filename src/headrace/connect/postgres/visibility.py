"""Which transactions a snapshot of Postgres sees: what `pg_current_snapshot()` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_XIDS: Final = 2**32


@dataclass(frozen=True)
class Visible:
    xmin: int
    """All before it had ended."""
    xmax: int
    """None from here on had ended, nor begun."""
    running: frozenset[int]
    """Between the two, those that had not ended."""

    def sees(self, xid: int) -> bool:
        """Of a transaction that was committed, by the 32 bits that the log has of its number. They are less
        than two thousand million away from the snapshot's: Postgres freezes older ones."""
        whole = self.xmax + _distance(xid, self.xmax)
        return whole < self.xmax and whole not in self.running

    @property
    def text(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, sorted(self.running)))}"


def visible_of(text: str) -> Visible:
    xmin, xmax, running = text.split(":")
    return Visible(int(xmin), int(xmax), frozenset(int(each) for each in running.split(",") if each))


def _distance(xid: int, reference: int) -> int:
    """From the reference, the shorter way round."""
    ahead = (xid - reference) % _XIDS
    return ahead - _XIDS if ahead >= _XIDS // 2 else ahead

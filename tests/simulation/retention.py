"""What retention may delete, said once more and apart from the broker that does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.testing.simulation.clock import BEGINNING_MS
from tests.simulation.mirror import Entry


class Retention(NamedTuple):
    milliseconds: int = -1
    size: int = -1

    def condemns(self, gone: Sequence[Entry], left: Sequence[Entry], now: float) -> bool:
        """Whether a log may lose `gone` and keep `left`."""
        if self.milliseconds >= 0:
            oldest = BEGINNING_MS + int(now * 1000) - self.milliseconds
            if all(entry.timestamp < oldest for entry in gone):
                return True
        return self.size >= 0 and sum(entry.size for entry in left) >= self.size


NO_RETENTION: Final = Retention()

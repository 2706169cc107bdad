"""What every nemesis is, and whom it picks."""

from __future__ import annotations

import random
from typing import ClassVar

from tests.chaos.testbed import Testbed
from tests.chaos.workload import TOPIC


class Nemesis:
    """One kind of fault. `domain` is what it breaks: two of one domain are never at work together."""

    name: ClassVar[str]
    domain: ClassVar[str]

    def __init__(self, bed: Testbed, source: random.Random) -> None:
        self.bed = bed
        self.random = source

    @classmethod
    def possible(cls, bed: Testbed) -> bool:
        return True

    def begin(self) -> str:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def victim(self) -> int:
        """Any broker, more often one that leads something."""
        if self.random.random() < 0.6:
            try:
                views = list(self.bed.cluster.view(TOPIC).partitions.values())
            except (OSError, EOFError):
                views = []
            leaders = sorted({view.leader for view in views if view.leader > 0})
            if leaders:
                return self.random.choice(leaders)
        return self.random.choice(self.bed.numbers)

    def victims(self) -> list[int]:
        """One, some or all."""
        count = self.random.choice((1, 1, 1, 2, len(self.bed.numbers)))
        first = self.victim()
        others = [number for number in self.bed.numbers if number != first]
        return sorted([first, *self.random.sample(others, count - 1)])

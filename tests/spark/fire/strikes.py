"""What is killed in a round, and when: decided by the seed alone, before anything runs."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import Final, NamedTuple


class Target(StrEnum):
    DRIVER = "driver"
    EXECUTOR = "executor"
    BROKER = "broker"
    STORE = "store"
    """Of objects, where topics have their history."""


class Moment(StrEnum):
    """Both lie within a batch: outside of one there is nothing to tear apart."""

    IN_BATCH = "in a batch"
    """At any time from its planning to shortly after its end."""
    IN_WRITE = "in a write"
    """When the first records of the batch have been seen at the place where the job writes."""


class Strike(NamedTuple):
    target: Target
    moment: Moment
    delay: float
    """How long after the moment, as a share of what a batch takes."""
    which: int
    """Of several executors or brokers; taken modulo their number."""
    down_seconds: float
    """How long a broker or the store stays away."""


#: A batch that is over has been told to Spark's own log a moment later: strikes go a little beyond the end.
_BEYOND: Final = 1.25


def planned(seed: int, count: int, *, brokers: bool = True, store: bool = False) -> list[Strike]:
    """Each target comes before any comes again, in an order of its own for each seed."""
    chance = random.Random(seed)
    there = {Target.DRIVER: True, Target.EXECUTOR: True, Target.BROKER: brokers, Target.STORE: store}
    targets = [target for target in Target if there[target]]
    chosen: list[Target] = []
    while len(chosen) < count:
        chance.shuffle(targets)
        chosen += targets
    return [
        Strike(
            target,
            moment := chance.choice(list(Moment)),
            # Into a write means soon: records go out in a fraction of what the batch takes.
            chance.uniform(0, _BEYOND if moment is Moment.IN_BATCH else _BEYOND / 3),
            chance.randrange(1 << 16),
            chance.uniform(0.5, 3.0),
        )
        for target in chosen[:count]
    ]

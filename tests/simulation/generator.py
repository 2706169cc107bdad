"""What one seed does: the shape of its cluster, and which faults come when.

Each seed knows only some of the faults, so that none of them drowns the others, and a tenth of them none at
all. Faults come in clusters: what breaks while something else is being repaired is what breaks systems.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.simulation.faults import Faults
from tests.simulation.retention import NO_RETENTION, Retention

WEIGHTS: Final = {
    "kill": 6,
    "bounce": 8,
    "stop": 4,
    "kill all": 1,
    "power": 5,
    "power everywhere": 2,
    "new disk": 2,
    "pause": 5,
    "hang": 3,
    "cut": 5,
    "one way": 5,
    "isolate": 4,
    "reset": 6,
    "suspect": 10,
    "prefer": 8,
    "stall": 8,
    "slow path": 4,
    "weather": 4,
    "no ensemble": 4,
    "quorum": 2,
    "doubt": 4,
    "clock": 1,
    "slow disk": 2,
    "failed sync": 2,
    "full disk": 2,
    "reassign": 5,
}

COINCIDENCE: Final = 20
"""How often one of coincidences.py is drawn, where a seed knows any."""

COMBINATIONS: Final = (
    # Epochs that come and go in processes that live on, while messages of the last one are still under way.
    ("suspect", "prefer", "stall", "reset", "slow path"),
    ("suspect", "prefer", "one way", "stall", "hang"),
    # Losses, while the one who lost something cannot tell everybody.
    ("power", "one way", "cut", "slow path"),
    ("new disk", "power", "bounce", "suspect"),
    ("power", "power everywhere", "bounce", "slow disk"),
    ("failed sync", "full disk", "stop", "bounce"),
    # The control plane.
    ("no ensemble", "doubt", "quorum", "hang", "suspect"),
    ("kill", "bounce", "doubt", "stall", "isolate"),
    # The life of a cluster.
    ("reassign", "stop", "prefer", "bounce", "pause"),
    ("reassign", "power", "cut", "suspect"),
)
"""Faults that make each other worse."""


@dataclass(frozen=True, slots=True)
class Plan:
    brokers: int
    partitions: int
    replication: int
    min_in_sync: int
    synced: bool
    """flush.messages=1: nothing is acknowledged that is not on enough disks."""
    producers: int
    consumers: int
    pause: float
    seconds: float
    faults: tuple[str, ...]
    gap: float
    """About how long it is calm between two faults."""
    directories: int = 1
    """Disks of each host."""
    theme: str = ""
    """Of the seeds that have one (themes.py)."""
    segment_bytes: int = 0
    """0: as large as they are by default."""
    retention: Retention = NO_RETENTION
    turns: bool = False
    """At the end each broker in turn is away, so that whoever is left is read from."""

    @property
    def configs(self) -> dict[str, str]:
        """Of the topic."""
        configs = {"min.insync.replicas": str(self.min_in_sync)}
        if self.synced:
            configs["flush.messages"] = "1"
        if self.segment_bytes:
            configs["internal.segment.bytes"] = str(self.segment_bytes)
            configs["index.interval.bytes"] = str(self.segment_bytes // 4)
            configs["retention.ms"] = str(self.retention.milliseconds)
            configs["retention.bytes"] = str(self.retention.size)
        return configs

    @classmethod
    def draw(cls, random: Random) -> Plan:
        chosen = _choose_faults(random)
        return cls(
            brokers=random.choice((3, 3, 3, 4)),
            partitions=random.choice((1, 1, 2, 3)),
            replication=3,
            min_in_sync=2,
            synced=random.random() < 0.3,
            producers=random.choice((1, 2)),
            consumers=random.choice((1, 1, 2)),
            pause=random.choice((0.1, 0.3, 0.6)),
            seconds=random.uniform(6.0, 20.0),
            faults=chosen,
            gap=random.choice((0.3, 1.0, 3.0)),
        )


def _choose_faults(random: Random) -> tuple[str, ...]:
    chance = random.random()
    if chance < 0.1:
        return ()
    if chance < 0.5:
        together = random.choice(COMBINATIONS)
        return tuple(random.sample(together, k=random.randint(2, len(together))))
    drawn = random.choices(list(WEIGHTS), weights=list(WEIGHTS.values()), k=random.randint(2, 8))
    return tuple(dict.fromkeys(drawn))


class Generator:
    """Draws the next fault, and when it comes."""

    def __init__(self, plan: Plan, faults: Faults, random: Random) -> None:
        self._plan = plan
        self._faults = faults
        self._random = random
        self._weights = [WEIGHTS.get(name, COINCIDENCE) for name in plan.faults]

    def next_gap(self) -> float:
        if self._random.random() < 0.3:
            return self._random.uniform(0.0, 0.1)
        return self._random.uniform(0.0, 2 * self._plan.gap)

    def strike(self) -> str | None:
        """What was done, or None if it could not be done now."""
        if not self._plan.faults:
            return None
        name = self._random.choices(self._plan.faults, weights=self._weights)[0]
        return self._faults.names[name]()

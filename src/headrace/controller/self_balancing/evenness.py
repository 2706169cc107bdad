"""How even the brokers of a cluster are, by five goals, and what a move would change about that.

Each goal has an even share for each broker: the mean, or for bytes the part that its disks are of all disks.
A broker is even if it is within the threshold of its share. What is judged by one number is the excess: of
each goal and broker how far it is beyond half of the threshold, squared, all together. A step counts only if
it lowers that number, so no sequence of steps comes back to where it began; and since nothing begins before
the whole threshold is passed, what is a little off is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.controller.self_balancing.loads import ClusterLoad, PartitionLoad, Settings

GOALS: Final = ("replicas", "leaders", "bytes", "rate in", "rate out")
REPLICAS, LEADERS, BYTES, RATE_IN, RATE_OUT = range(len(GOALS))
_COUNTS: Final = (REPLICAS, LEADERS)
INNER: Final = 0.5
"""Of the threshold: what a step aims at, so that it does not end just where the next one would begin."""

Vector = tuple[float, ...]
"""One number for each goal."""
NOTHING: Final[Vector] = (0.0,) * len(GOALS)


def replica_vector(load: PartitionLoad) -> Vector:
    """What every replica of a partition costs its broker."""
    return (1.0, 0.0, float(load.size_bytes), load.rate_in, 0.0)


def leader_vector(load: PartitionLoad) -> Vector:
    """What its leader costs besides: it sends to consumers, and to the other replicas."""
    return (0.0, 1.0, 0.0, 0.0, load.rate_out + load.rate_in * (len(load.replicas) - 1))


def added(one: Vector, other: Vector) -> Vector:
    return tuple(map(float.__add__, one, other))


class Deviation(NamedTuple):
    broker: int
    goal: int
    share: float
    """How far it is from its even load, as a share of that."""

    @property
    def goal_name(self) -> str:
        return GOALS[self.goal]

    def __str__(self) -> str:
        more = "above" if self.share > 0 else "below"
        return f"{self.goal_name} of broker {self.broker} {abs(self.share):.0%} {more} even"


class Evenness:
    """The load of each broker, as it changes with the steps of a plan."""

    __slots__ = ("_even", "_inner", "_loads", "_threshold", "counted")

    def __init__(self, load: ClusterLoad, settings: Settings) -> None:
        loads = {broker: [0.0] * len(GOALS) for broker in load.brokers}
        for each in load.partitions.values():
            for at, broker in enumerate(each.replicas):
                mine = loads.get(broker)
                if mine is not None:
                    mine[REPLICAS] += 1.0
                    mine[BYTES] += each.size_bytes
                    mine[RATE_IN] += each.rate_in
                    if at == 0:
                        mine[LEADERS] += 1.0
                        mine[RATE_OUT] += each.rate_out + each.rate_in * (len(each.replicas) - 1)
        self._loads = loads
        self._threshold = settings.threshold
        self._inner = settings.threshold * INNER
        totals = [sum(each[goal] for each in loads.values()) for goal in range(len(GOALS))]
        count = max(len(loads), 1)
        least = {BYTES: settings.min_bytes, RATE_IN: settings.min_rate, RATE_OUT: settings.min_rate}
        self.counted = tuple(
            goal
            for goal in range(len(GOALS))
            if totals[goal] > 0 and totals[goal] / count >= least.get(goal, 0)
        )
        """The goals that count. Those of which there is next to nothing do not."""
        disks = {broker: room.total_bytes for broker, room in load.brokers.items()}
        all_disks = sum(disks.values()) if all(each > 0 for each in disks.values()) else 0
        self._even = {
            broker: [
                totals[goal] * disks[broker] / all_disks
                if goal == BYTES and all_disks
                else totals[goal] / count
                for goal in range(len(GOALS))
            ]
            for broker in loads
        }

    def load_of(self, broker: int) -> Sequence[float]:
        return self._loads[broker]

    def even_load_of(self, broker: int) -> Sequence[float]:
        return self._even[broker]

    def share(self, broker: int, goal: int) -> float:
        return self._loads[broker][goal] / self._even[broker][goal] - 1.0

    def deviations(self) -> list[Deviation]:
        """Those beyond the threshold, the worst first. A count that is less than one off cannot be better."""
        found = []
        for broker, load in self._loads.items():
            for goal in self.counted:
                share = self.share(broker, goal)
                if abs(share) <= self._threshold:
                    continue
                if goal in _COUNTS and abs(load[goal] - self._even[broker][goal]) < 1.0:
                    continue
                found.append(Deviation(broker, goal, share))
        return sorted(found, key=lambda each: (-abs(each.share), each.broker, each.goal))

    def excess(self) -> float:
        """What every step lowers."""
        return sum(
            max(abs(self.share(broker, goal)) - self._inner, 0.0) ** 2
            for broker in self._loads
            for goal in self.counted
        )

    def gain(self, source: int, destination: int, moved: Vector) -> float:
        """By how much the excess falls if `moved` goes from one to the other."""
        giving, taking = self._loads[source], self._loads[destination]
        even_giving, even_taking, inner = self._even[source], self._even[destination], self._inner
        fallen = 0.0
        for goal in self.counted:
            amount = moved[goal]
            if not amount:
                continue
            for load, even, change in (
                (giving[goal], even_giving[goal], -amount),
                (taking[goal], even_taking[goal], amount),
            ):
                before = abs(load / even - 1.0) - inner
                after = abs((load + change) / even - 1.0) - inner
                if before > 0.0:
                    fallen += before * before
                if after > 0.0:
                    fallen -= after * after
        return fallen

    def least_gain(self, source: int, moved: Vector) -> float:
        """What `gain` has to be for the trouble of a move of this size: figures that waver gain less."""
        even = self._even[source]
        return LEAST * max(abs(moved[goal]) / even[goal] for goal in self.counted) if self.counted else 0.0

    def move(self, source: int, destination: int, moved: Vector) -> None:
        for goal, amount in enumerate(moved):
            self._loads[source][goal] -= amount
            self._loads[destination][goal] += amount


LEAST: Final = 0.01
"""Of the size of a move, as a share of an even load: what is less than this beyond is not worth it."""

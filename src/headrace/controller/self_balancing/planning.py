"""The next few steps towards evenness, or why there are none.

Looks at the brokers that are furthest from even, and of what they hold at some of each size: a leadership
that goes to another replica, a replica that goes to another broker, or two that change places. The step that
gains most is taken, until there are as many as may be under way. Leaderships copy nothing, so they come first
where they gain as much. No step puts two replicas in one rack that were in two, or fills a disk.

A generator, because of many partitions this takes a while: it gives None again and again, and the plan last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.controller.self_balancing.evenness import (
    GOALS,
    LEADERS,
    NOTHING,
    RATE_OUT,
    Deviation,
    Evenness,
    Vector,
    added,
    leader_vector,
    replica_vector,
)
from headrace.controller.self_balancing.loads import ClusterLoad, PartitionLoad, Settings, Step
from headrace.core.ids import TopicPartition

BROKERS_TRIED: Final = 3
"""The furthest on either side, for each goal."""
REPLICAS_TRIED: Final = 64
"""Of a broker, of all sizes."""
PAIRS_TRIED: Final = 12
"""Of either broker, where two replicas could change places."""
LEADERSHIP_BONUS: Final = 2.0
AT_ONCE: Final = 32
"""What is looked at before the caller may do something else."""


@dataclass(slots=True)
class Plan:
    steps: list[Step] = field(default_factory=list)
    uneven: list[Deviation] = field(default_factory=list)
    """As it was before the steps, the worst first."""


class _Option(NamedTuple):
    """Some partitions with their new replicas, and what that gains."""

    score: float
    goal: int
    changes: tuple[tuple[TopicPartition, tuple[int, ...]], ...]


def plan(
    load: ClusterLoad, settings: Settings, *, most: int, resting: Collection[TopicPartition] = ()
) -> Iterator[Plan | None]:
    """At most `most` steps. What is in `resting` stays where it is, and what is on its way too."""
    search = _Search(load, settings, resting)
    result = Plan(uneven=search.evenness.deviations())
    while result.uneven and len(result.steps) < most:
        best: _Option | None = None
        for options in search.rounds(most - len(result.steps)):
            for option in options:
                if option is None:
                    yield None
                elif best is None or option.score > best.score:
                    best = option
            if best is not None:
                break
        if best is None:
            break
        for partition, after in best.changes:
            result.steps.append(search.take(partition, after, best.goal))
    yield result


class _Search:
    def __init__(self, load: ClusterLoad, settings: Settings, resting: Collection[TopicPartition]) -> None:
        self.evenness = Evenness(load, settings)
        self._brokers = load.brokers
        self._partitions = dict(load.partitions)
        self._resting = set(resting)
        self._held: dict[int, dict[TopicPartition, None]] = {broker: {} for broker in load.brokers}
        self._room = {broker: room.room_bytes for broker, room in load.brokers.items()}
        for key, each in load.partitions.items():
            for broker in each.replicas:
                if broker in self._held:
                    self._held[broker][key] = None
            for broker in each.arriving:
                self._fill(broker, each.size_bytes)
            if each.arriving:
                self._resting.add(key)

    def _fill(self, broker: int, size: int) -> None:
        room = self._room.get(broker)
        if room is not None:
            self._room[broker] = room - size

    def take(self, key: TopicPartition, after: tuple[int, ...], goal: int) -> Step:
        before = self._partitions[key]
        step = Step(key, before.replicas, after, GOALS[goal])
        replica, leader = replica_vector(before), leader_vector(before)
        for source, destination in zip(step.removing, step.adding, strict=True):
            self.evenness.move(source, destination, replica)
            del self._held[source][key]
            self._held[destination][key] = None
            self._fill(destination, before.size_bytes)
        if before.replicas[0] != after[0]:
            self.evenness.move(before.replicas[0], after[0], leader)
        self._partitions[key] = before._replace(replicas=after)
        self._resting.add(key)
        return step

    # --- what could be done ------------------------------------------------------------------------------

    def rounds(self, most: int) -> Iterator[Iterator[_Option | None]]:
        """Options, those for the goal that is furthest from even first. Two change places only if nothing
        else helps that goal."""
        for goal in dict.fromkeys(each.goal for each in self.evenness.deviations()):
            pairs = list(self._pairs(goal))
            yield _in_slices(self._singles(goal, pairs))
            if most >= 2:
                yield _in_slices(self._exchanges(goal, pairs))

    def _pairs(self, goal: int) -> Iterator[tuple[int, int]]:
        """Brokers that have most of it, with those that have least."""
        by_share = sorted(self._brokers, key=lambda each: (self.evenness.share(each, goal), each))
        for source in reversed(by_share[-BROKERS_TRIED:]):
            for destination in by_share[:BROKERS_TRIED]:
                if self.evenness.share(source, goal) > self.evenness.share(destination, goal):
                    yield source, destination

    def _singles(self, goal: int, pairs: list[tuple[int, int]]) -> Iterator[_Option | None]:
        for source, destination in pairs:
            if goal in (LEADERS, RATE_OUT):
                yield from self._leaderships(goal, source, destination)
            for key in self._sample(source, goal, REPLICAS_TRIED, without=destination):
                yield self._replica(goal, key, source, destination)

    def _exchanges(self, goal: int, pairs: list[tuple[int, int]]) -> Iterator[_Option | None]:
        for source, destination in pairs:
            theirs = self._sample(destination, goal, PAIRS_TRIED, without=source)
            for key in self._sample(source, goal, PAIRS_TRIED, without=destination):
                for other in theirs:
                    yield self._exchange(goal, key, other, source, destination)

    def _sample(self, broker: int, goal: int, most: int, *, without: int) -> list[TopicPartition]:
        """Replicas that may go, from the largest to the smallest in this goal."""
        free = [
            key
            for key in self._held[broker]
            if key not in self._resting and without not in self._partitions[key].replicas
        ]
        free.sort(key=lambda key: (-self._cost(key, broker)[goal], key))
        if len(free) <= most:
            return free
        return [free[at * len(free) // most] for at in range(most)]

    def _cost(self, key: TopicPartition, broker: int) -> Vector:
        load = self._partitions[key]
        replica = replica_vector(load)
        return added(replica, leader_vector(load)) if load.replicas[0] == broker else replica

    def _leaderships(self, goal: int, source: int, destination: int) -> Iterator[_Option | None]:
        """Of partitions that both hold."""
        both = [
            key
            for key in self._held[source]
            if key in self._held[destination]
            and key not in self._resting
            and self._partitions[key].replicas[0] == source
        ]
        both.sort(key=lambda key: (-leader_vector(self._partitions[key])[goal], key))
        for key in both[:: max(len(both) // REPLICAS_TRIED, 1)]:
            load = self._partitions[key]
            score = self._score(source, destination, leader_vector(load))
            if score is None:
                yield None
                continue
            rest = (each for each in load.replicas if each != destination)
            yield _Option(score * LEADERSHIP_BONUS, goal, ((key, (destination, *rest)),))

    def _replica(self, goal: int, key: TopicPartition, source: int, destination: int) -> _Option | None:
        load = self._partitions[key]
        if not self._may_go(load, source, destination, load.size_bytes):
            return None
        score = self._score(source, destination, self._cost(key, source))
        after = _replaced(load.replicas, source, destination)
        return None if score is None else _Option(score, goal, ((key, after),))

    def _exchange(
        self, goal: int, key: TopicPartition, other: TopicPartition, source: int, destination: int
    ) -> _Option | None:
        mine, theirs = self._partitions[key], self._partitions[other]
        # Each is copied before the other leaves: there has to be room for both.
        if not self._may_go(mine, source, destination, mine.size_bytes):
            return None
        if not self._may_go(theirs, destination, source, theirs.size_bytes):
            return None
        given, taken = self._cost(key, source), self._cost(other, destination)
        score = self._score(source, destination, tuple(map(float.__sub__, given, taken)), given)
        if score is None:
            return None
        return _Option(
            score / 2,
            goal,
            (
                (key, _replaced(mine.replicas, source, destination)),
                (other, _replaced(theirs.replicas, destination, source)),
            ),
        )

    def _score(self, source: int, destination: int, moved: Vector, size: Vector = NOTHING) -> float | None:
        gain = self.evenness.gain(source, destination, moved)
        least = self.evenness.least_gain(source, moved if size is NOTHING else size)
        return gain if gain > least and gain > 0.0 else None

    def _may_go(self, load: PartitionLoad, source: int, destination: int, size: int) -> bool:
        room = self._room[destination]
        if room is not None and size > room:
            return False
        after = _replaced(load.replicas, source, destination)
        return self._racks(after) >= self._racks(load.replicas)

    def _racks(self, replicas: Iterable[int]) -> int:
        """How many are used. A broker without a rack, or that nobody knows, counts as one of its own."""
        rooms = self._brokers
        return len({(rooms[each].rack if each in rooms else None) or f"\0{each}" for each in replicas})


def _in_slices(options: Iterator[_Option | None]) -> Iterator[_Option | None]:
    """The same without the misses, and with a None now and then."""
    for looked, option in enumerate(options, 1):
        if option is not None:
            yield option
        if looked % AT_ONCE == 0:
            yield None


def _replaced(replicas: tuple[int, ...], source: int, destination: int) -> tuple[int, ...]:
    return tuple(destination if each == source else each for each in replicas)

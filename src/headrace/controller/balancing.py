"""Plans that move replicas: even out a cluster, empty a broker, take leaderships away from one.

A plan is computed from what Metadata answers say, so it knows nothing of the controller's image: the key of a
partition is whatever the caller has. Moves are few: a replica moves only from a broker that has too many to
one that has too few (or from one that is emptied), and leaderships are evened by the order of the replicas,
which moves no data. No move makes a partition's racks fewer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from headrace.core.errors import InvalidReplicationFactor

K = TypeVar("K", bound=Hashable)
Replicas = tuple[int, ...]
Racks = Mapping[int, str | None]
"""The brokers that live, and their racks. Only they are given anything."""


def plan_rebalance(partitions: Mapping[K, Sequence[int]], racks: Racks) -> dict[K, Replicas]:
    """New replicas of the partitions that change, the preferred leader first."""
    layout = _Layout(partitions, racks)
    layout.spread_racks()
    layout.even_replicas()
    layout.even_leaders()
    return layout.changes()


def plan_drain(
    partitions: Mapping[K, Sequence[int]], racks: Racks, brokers: Collection[int]
) -> dict[K, Replicas]:
    """Empty `brokers`. Raises InvalidReplicationFactor if the others are too few to hold everything."""
    left = {broker_id: rack for broker_id, rack in racks.items() if broker_id not in brokers}
    layout = _Layout(partitions, left)
    for key, replicas in partitions.items():
        leaving = [broker_id for broker_id in replicas if broker_id in brokers]
        for broker_id in leaving:
            layout.replace(key, broker_id)
        if leaving and replicas[0] in leaving:
            layout.lead_with_the_least(key)
    return layout.changes()


def plan_leaders_away(
    partitions: Mapping[K, Sequence[int]], racks: Racks, brokers: Collection[int]
) -> dict[K, Replicas]:
    """Let others lead what `brokers` lead. No data moves; what only they hold stays as it is."""
    left = {broker_id: rack for broker_id, rack in racks.items() if broker_id not in brokers}
    layout = _Layout(partitions, left)
    for key, replicas in partitions.items():
        if replicas and replicas[0] in brokers:
            layout.lead_with_the_least(key)
    return layout.changes()


class _Layout(Generic[K]):
    """Where everything is, as the plan grows. Brokers that do not live keep what they have."""

    __slots__ = ("_before", "_held", "_led", "_now", "_racks")

    def __init__(self, partitions: Mapping[K, Sequence[int]], racks: Racks) -> None:
        self._racks = dict(sorted(racks.items()))
        self._before = {key: tuple(replicas) for key, replicas in partitions.items()}
        self._now = dict(self._before)
        # Of each living broker: the partitions it holds, and how many of them it leads.
        self._held: dict[int, dict[K, None]] = {broker_id: {} for broker_id in self._racks}
        self._led: dict[int, int] = dict.fromkeys(self._racks, 0)
        for key, replicas in self._now.items():
            for broker_id in replicas:
                if broker_id in self._held:
                    self._held[broker_id][key] = None
            if replicas and replicas[0] in self._led:
                self._led[replicas[0]] += 1

    def changes(self) -> dict[K, Replicas]:
        return {key: replicas for key, replicas in self._now.items() if replicas != self._before[key]}

    # --- single steps ---------------------------------------------------------------------------------------

    def _put(self, key: K, replicas: Replicas) -> None:
        old = self._now[key]
        for broker_id in old:
            if broker_id not in replicas and broker_id in self._held:
                del self._held[broker_id][key]
        for broker_id in replicas:
            if broker_id not in old:
                self._held[broker_id][key] = None
        if old[0] != replicas[0]:
            if old[0] in self._led:
                self._led[old[0]] -= 1
            if replicas[0] in self._led:
                self._led[replicas[0]] += 1
        self._now[key] = replicas

    def _move(self, key: K, source: int, destination: int) -> None:
        self._put(key, tuple(destination if each == source else each for each in self._now[key]))

    def _variety(self, replicas: Iterable[int]) -> int:
        """How many racks are used. Without any rack named, every broker counts as one of its own."""
        return len({self._racks.get(each) or f"\0{each}" for each in replicas})

    def _variety_after(self, key: K, source: int, destination: int) -> int:
        return self._variety(destination if each == source else each for each in self._now[key])

    def replace(self, key: K, source: int) -> None:
        """By the broker that keeps most racks apart, and of those by the one that holds least."""
        free = [each for each in self._racks if each not in self._now[key]]
        if not free:
            raise InvalidReplicationFactor(
                f"{len(self._now[key])} replicas of {key} need as many brokers; {len(self._racks)} are left"
            )
        best = min(
            free, key=lambda each: (-self._variety_after(key, source, each), len(self._held[each]), each)
        )
        self._move(key, source, best)

    def lead_with_the_least(self, key: K) -> None:
        """Put that replica first which leads fewest others; the rest keep their order."""
        living = [each for each in self._now[key] if each in self._led]
        if living:
            first = min(living, key=lambda each: (self._led[each], self._now[key].index(each)))
            self._lead(key, first)

    def _lead(self, key: K, first: int) -> None:
        self._put(key, (first, *(each for each in self._now[key] if each != first)))

    # --- the whole ------------------------------------------------------------------------------------------

    def spread_racks(self) -> None:
        """A partition with two replicas in one rack moves one of them if another rack has none."""
        named = {rack for rack in self._racks.values() if rack is not None}
        if len(named) < 2:
            return
        for key in self._now:
            while self._spread(key):
                pass

    def _spread(self, key: K) -> bool:
        now = self._variety(self._now[key])
        if now == len(self._now[key]):
            return False
        steps = [
            (-len(self._held[source]), len(self._held[destination]), source, destination)
            for source in self._now[key]
            if source in self._held
            for destination in self._racks
            if destination not in self._now[key] and self._variety_after(key, source, destination) > now
        ]
        if not steps:
            return False
        _, _, source, destination = min(steps)
        self._move(key, source, destination)
        return True

    def even_replicas(self) -> None:
        """Until no broker holds two more than another that could take one of them."""
        moved = True
        while moved:
            moved = False
            # Of each giver and taker, what is left to try. That ages with each move, so the last look is new.
            offers: dict[tuple[int, int], Iterator[K]] = {}
            while (step := self._step(offers)) is not None:
                self._move(*step)
                moved = True

    def _step(self, offers: dict[tuple[int, int], Iterator[K]]) -> tuple[K, int, int] | None:
        by_load = sorted(self._held, key=lambda each: (len(self._held[each]), each))
        for source in reversed(by_load):
            for destination in by_load:
                if len(self._held[source]) - len(self._held[destination]) < 2:
                    break
                if (source, destination) not in offers:
                    offers[source, destination] = self._offers(source, destination)
                key = next(offers[source, destination], None)
                if key is not None:
                    return key, source, destination
        return None

    def _offers(self, source: int, destination: int) -> Iterator[K]:
        """Partitions of `source` that `destination` could hold; first those that `source` does not lead."""
        held = sorted(self._held[source], key=lambda key: self._now[key][0] == source)
        for key in held:
            replicas = self._now[key]
            if source not in replicas or destination in replicas:
                continue
            if self._variety_after(key, source, destination) >= self._variety(replicas):
                yield key

    def even_leaders(self) -> None:
        """Until no broker leads two more than another that it could pass a leadership to, by however many."""
        while self._hand_over_directly():
            pass
        while chain := self._chain():
            for key, first in chain:
                self._lead(key, first)

    def _hand_over_directly(self) -> bool:
        changed = False
        for key, replicas in self._now.items():
            if replicas[0] not in self._led:
                continue
            least = min((each for each in replicas if each in self._led), key=self._led.__getitem__)
            if self._led[replicas[0]] - self._led[least] >= 2:
                self._lead(key, least)
                changed = True
        return changed

    def _chain(self) -> list[tuple[K, int]]:
        """A shortest chain of handovers from a broker to one that leads at least two fewer."""
        led: dict[int, list[K]] = {broker_id: [] for broker_id in self._led}
        for key, replicas in self._now.items():
            if replicas[0] in led:
                led[replicas[0]].append(key)
        hopeless: set[int] = set()
        for source in sorted(led, key=lambda each: (-len(led[each]), each)):
            if source in hopeless:
                continue
            came: dict[int, tuple[int, K]] = {}
            queue = deque([source])
            while queue:
                at = queue.popleft()
                if len(led[at]) <= len(led[source]) - 2:
                    return _retraced(came, source, at)
                for key in led[at]:
                    for each in self._now[key][1:]:
                        if each in led and each != source and each not in came:
                            came[each] = (at, key)
                            queue.append(each)
            # Whom the busiest cannot relieve through these, none of these can.
            hopeless.update(came)
        return []


def _retraced(came: Mapping[int, tuple[int, K]], source: int, at: int) -> list[tuple[K, int]]:
    chain: list[tuple[K, int]] = []
    while at != source:
        before, key = came[at]
        chain.append((key, at))
        at = before
    return chain

"""The uniform assignor for members that subscribe to different topics.

What is assigned stays where it is allowed. What is free goes to the subscriber that has least. Then some move
from members with more to members with less, if need be over others in between, until no chain of moves makes
the group more even. That is as even as the subscriptions allow.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Final
from uuid import UUID

from headrace.groups.consumer.assignors.spec import Assignment, GroupSpec
from headrace.groups.consumer.assignors.subscribers import bunches

_MAX_MOVES_PER_PARTITION: Final = 4
"""Ends the search in hopeless cases; moves come to rest long before."""


def assign_mixed(group: GroupSpec) -> dict[str, Assignment]:
    mixed = _Mixed(group)
    mixed.keep()
    mixed.fill()
    mixed.even_out()
    return mixed.result()


class _Mixed:
    """Members and bunches of topics with the same subscribers are numbers here. A chain of moves only has to
    know the bunch: which of its topics a partition is of makes no difference."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._ids = list(group.members)
        numbers = {member_id: index for index, member_id in enumerate(self._ids)}
        self._subscribers: list[list[int]] = []
        self._topics: list[list[UUID]] = []
        self._bunch_of: dict[UUID, int] = {}
        self._bunches_of: list[list[int]] = [[] for _ in self._ids]
        for bunch, (members, topics) in enumerate(bunches(group, self._ids)):
            self._subscribers.append([numbers[member_id] for member_id in members])
            self._topics.append(topics)
            self._bunch_of.update(dict.fromkeys(topics, bunch))
            for index in self._subscribers[bunch]:
                self._bunches_of[index].append(bunch)
        self._held: list[dict[int, dict[UUID, set[int]]]] = [{} for _ in self._ids]
        """By member and bunch."""
        self._holders: list[dict[int, None]] = [{} for _ in self._topics]
        self._sizes = [0] * len(self._ids)

    def keep(self) -> None:
        taken: dict[UUID, set[int]] = {}
        for index, spec in enumerate(self._group.members.values()):
            own = set(self._bunches_of[index])
            for topic_id, numbers in spec.assigned.items():
                if self._bunch_of.get(topic_id) not in own:
                    continue
                count = self._group.partition_counts[topic_id]
                owned = taken.setdefault(topic_id, set())
                for number in sorted(numbers):
                    if number < count and number not in owned:
                        owned.add(number)
                        self._give(index, topic_id, number)
        self._taken = taken

    def fill(self) -> None:
        """Topics with few subscribers first: they have the least choice."""
        for bunch in sorted(range(len(self._topics)), key=lambda bunch: len(self._subscribers[bunch])):
            heap = [(self._sizes[index], index) for index in self._subscribers[bunch]]
            heapq.heapify(heap)
            for topic_id in self._topics[bunch]:
                taken = self._taken.get(topic_id, ())
                for number in range(self._group.partition_counts[topic_id]):
                    if number not in taken:
                        size, index = heap[0]
                        self._give(index, topic_id, number)
                        heapq.heapreplace(heap, (size + 1, index))

    def even_out(self) -> None:
        """From the emptiest members up. Whoever can give to one of them, if only over others, is looked at
        with it; if none of those has two more, they are settled, and no chain of anybody else leads through
        them."""
        moves_left = _MAX_MOVES_PER_PARTITION * sum(self._sizes)
        settled: set[int] = set()
        while len(settled) < len(self._ids):
            least = min(self._sizes[index] for index in range(len(self._ids)) if index not in settled)
            emptiest = [
                index
                for index in range(len(self._ids))
                if index not in settled and self._sizes[index] == least
            ]
            chain, seen = self._chain_to(emptiest, settled)
            if not chain or moves_left <= 0:
                settled |= seen
                continue
            for giver, bunch, taker in chain:
                self._move(giver, bunch, taker)
            moves_left -= len(chain)

    def _chain_to(self, ends: list[int], settled: set[int]) -> tuple[list[tuple[int, int, int]], set[int]]:
        """Moves from somebody who has two more than the ends to one of them, the last move first; and all who
        could give to the ends."""
        much = self._sizes[ends[0]] + 2
        to: dict[int, tuple[int, int]] = {}
        seen, seen_bunches = set(ends), set()
        queue = deque(ends)
        while queue:
            taker = queue.popleft()
            for bunch in self._bunches_of[taker]:
                if bunch in seen_bunches:
                    continue
                seen_bunches.add(bunch)
                for giver in self._holders[bunch]:
                    if giver in seen or giver in settled:
                        continue
                    seen.add(giver)
                    to[giver] = (bunch, taker)
                    if self._sizes[giver] >= much:
                        return self._chain_from(giver, to), seen
                    queue.append(giver)
        return [], seen

    def _chain_from(self, giver: int, to: dict[int, tuple[int, int]]) -> list[tuple[int, int, int]]:
        chain: list[tuple[int, int, int]] = []
        while giver in to:
            bunch, taker = to[giver]
            chain.append((giver, bunch, taker))
            giver = taker
        return chain[::-1]

    def _give(self, index: int, topic_id: UUID, number: int) -> None:
        bunch = self._bunch_of[topic_id]
        self._held[index].setdefault(bunch, {}).setdefault(topic_id, set()).add(number)
        self._holders[bunch][index] = None
        self._sizes[index] += 1

    def _move(self, giver: int, bunch: int, taker: int) -> None:
        topic_id, number = self._choice(giver, taker, bunch)
        held = self._held[giver]
        held[bunch][topic_id].remove(number)
        if not held[bunch][topic_id]:
            del held[bunch][topic_id]
        if not held[bunch]:
            del held[bunch], self._holders[bunch][giver]
        self._sizes[giver] -= 1
        self._give(taker, topic_id, number)

    def _choice(self, giver: int, taker: int, bunch: int) -> tuple[UUID, int]:
        """Rather one that the taker had before, or that the giver did not: then nothing moves in the end."""
        had = self._group.members[self._ids[giver]].assigned
        gets_back = self._group.members[self._ids[taker]].assigned
        new: tuple[UUID, int] | None = None
        for topic_id, numbers in self._held[giver][bunch].items():
            back = numbers & gets_back.get(topic_id, frozenset())
            if back:
                return topic_id, max(back)
            if new is None and (others := numbers - had.get(topic_id, frozenset())):
                new = topic_id, max(others)
        if new is not None:
            return new
        topic_id, numbers = next(reversed(self._held[giver][bunch].items()))
        return topic_id, max(numbers)

    def result(self) -> dict[str, Assignment]:
        return {
            member_id: {
                topic_id: frozenset(numbers)
                for topics in held.values()
                for topic_id, numbers in topics.items()
            }
            for member_id, held in zip(self._ids, self._held, strict=True)
        }

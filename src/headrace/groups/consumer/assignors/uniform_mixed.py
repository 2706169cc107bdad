"""The uniform assignor for members that subscribe to different topics.

What is assigned stays where it is allowed. What is free goes to the subscriber that has least. Then some
move from members with more to members with less, if need be over others in between, until no chain of moves
makes the group more even. That is as even as the subscriptions allow.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Final
from uuid import UUID

from headrace.groups.consumer.assignors.spec import Assignment, GroupSpec

_MAX_MOVES_PER_PARTITION: Final = 4
"""Ends the search in hopeless cases; moves come to rest long before."""


def assign_mixed(group: GroupSpec) -> dict[str, Assignment]:
    mixed = _Mixed(group)
    mixed.keep()
    mixed.fill()
    mixed.even_out()
    return mixed.result()


class _Mixed:
    """Members are numbers here, in the order of the group."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._ids = list(group.members)
        self._subscribers: dict[UUID, list[int]] = {}
        for index, spec in enumerate(group.members.values()):
            for topic_id in spec.topics:
                self._subscribers.setdefault(topic_id, []).append(index)
        self._held: list[dict[UUID, set[int]]] = [{} for _ in self._ids]
        self._sizes = [0] * len(self._ids)
        self._taken: dict[UUID, set[int]] = {topic_id: set() for topic_id in self._subscribers}

    def keep(self) -> None:
        counts = self._group.partition_counts
        for index, spec in enumerate(self._group.members.values()):
            topics = set(spec.topics)
            for topic_id, numbers in spec.assigned.items():
                if topic_id not in topics:
                    continue
                taken, count = self._taken[topic_id], counts[topic_id]
                good = {number for number in numbers if number < count and number not in taken}
                if good:
                    self._held[index][topic_id] = good
                    self._sizes[index] += len(good)
                    taken |= good

    def fill(self) -> None:
        """Topics with few subscribers first: they have the least choice."""
        for topic_id in sorted(self._subscribers, key=lambda topic_id: len(self._subscribers[topic_id])):
            taken = self._taken[topic_id]
            free = [number for number in range(self._group.partition_counts[topic_id]) if number not in taken]
            if not free:
                continue
            heap = [(self._sizes[index], index) for index in self._subscribers[topic_id]]
            heapq.heapify(heap)
            for number in free:
                size, index = heap[0]
                self._held[index].setdefault(topic_id, set()).add(number)
                self._sizes[index] = size + 1
                heapq.heapreplace(heap, (size + 1, index))

    def even_out(self) -> None:
        """From the fullest member down: whoever cannot give anything to somebody with less is done for good,
        until another move changes what it could reach."""
        moves_left = _MAX_MOVES_PER_PARTITION * sum(self._sizes)
        moved = True
        while moved and moves_left > 0:
            moved = False
            for index in sorted(range(len(self._ids)), key=lambda index: -self._sizes[index]):
                while moves_left > 0 and (chain := self._chain_from(index)):
                    for giver, topic_id, taker in chain:
                        self._move(giver, topic_id, taker)
                    moves_left -= len(chain)
                    moved = True

    def _chain_from(self, start: int) -> list[tuple[int, UUID, int]]:
        """The shortest chain of moves to a member that has at least two less; empty if there is none."""
        wanted = self._sizes[start] - 2
        came: dict[int, tuple[int, UUID]] = {}
        seen_topics: set[UUID] = set()
        queue = deque([start])
        while queue:
            giver = queue.popleft()
            for topic_id in self._held[giver]:
                if topic_id in seen_topics:
                    continue
                seen_topics.add(topic_id)
                for taker in self._subscribers[topic_id]:
                    if taker == start or taker in came:
                        continue
                    came[taker] = (giver, topic_id)
                    if self._sizes[taker] <= wanted:
                        return self._chain_to(taker, start, came)
                    queue.append(taker)
        return []

    def _chain_to(
        self, end: int, start: int, came: dict[int, tuple[int, UUID]]
    ) -> list[tuple[int, UUID, int]]:
        chain = []
        while end != start:
            giver, topic_id = came[end]
            chain.append((giver, topic_id, end))
            end = giver
        return chain

    def _move(self, giver: int, topic_id: UUID, taker: int) -> None:
        numbers = self._held[giver][topic_id]
        number = self._choice(giver, taker, topic_id, numbers)
        numbers.remove(number)
        if not numbers:
            del self._held[giver][topic_id]
        self._held[taker].setdefault(topic_id, set()).add(number)
        self._sizes[giver] -= 1
        self._sizes[taker] += 1

    def _choice(self, giver: int, taker: int, topic_id: UUID, numbers: set[int]) -> int:
        """Rather one that the taker had before, or that the giver did not: then nothing moves in the end."""
        before = self._group.members
        back = numbers & before[self._ids[taker]].assigned.get(topic_id, frozenset())
        new = numbers - before[self._ids[giver]].assigned.get(topic_id, frozenset())
        return max(back or new or numbers)

    def result(self) -> dict[str, Assignment]:
        return {
            member_id: {topic_id: frozenset(numbers) for topic_id, numbers in held.items()}
            for member_id, held in zip(self._ids, self._held, strict=True)
        }

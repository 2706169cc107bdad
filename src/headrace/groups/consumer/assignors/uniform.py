"""The uniform assignor: all members get equally many partitions, and as few partitions as possible move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import islice
from uuid import UUID

from headrace.groups.consumer.assignors.spec import Assignment, GroupSpec
from headrace.groups.consumer.assignors.uniform_mixed import assign_mixed

Taken = dict[UUID, set[int]]


def assign_uniformly(group: GroupSpec) -> dict[str, Assignment]:
    if not group.members:
        return {}
    return _assign_alike(group) if group.homogeneous else assign_mixed(group)


def _assign_alike(group: GroupSpec) -> dict[str, Assignment]:
    """All members subscribe to the same topics, so the quotas are known before anything moves."""
    topics = next(iter(group.members.values())).topics
    counts = {topic_id: group.partition_counts[topic_id] for topic_id in topics}
    taken: Taken = {}
    kept = {
        member_id: _still_valid(spec.assigned, counts, taken) for member_id, spec in group.members.items()
    }
    sizes = {member_id: sum(map(len, partitions.values())) for member_id, partitions in kept.items()}
    quotas = _quotas(sizes, sum(counts.values()))
    for member_id, quota in quotas.items():
        if sizes[member_id] > quota:
            kept[member_id] = _cut(kept[member_id], quota, taken)
    free = _free(counts, taken)
    assigned: dict[str, Assignment] = {}
    for member_id, quota in quotas.items():
        missing = quota - sizes[member_id]
        assigned[member_id] = (
            _with(kept[member_id], islice(free, missing)) if missing > 0 else kept[member_id]
        )
    return assigned


def _still_valid(assigned: Assignment, counts: dict[UUID, int], taken: Taken) -> Assignment:
    """What exists, is subscribed to and has no other owner. The same object if that is all of it."""
    valid: dict[UUID, Set[int]] = {}
    whole = True
    for topic_id, numbers in assigned.items():
        count = counts.get(topic_id)
        if count is None:
            whole = False
            continue
        owned = taken.setdefault(topic_id, set())
        good = numbers
        if not owned.isdisjoint(numbers) or max(numbers, default=0) >= count:
            good = frozenset(number for number in numbers if number < count and number not in owned)
            whole = whole and len(good) == len(numbers)
        if good:
            valid[topic_id] = good
            owned |= good
    return assigned if whole else valid


def _quotas(sizes: dict[str, int], total: int) -> dict[str, int]:
    """The larger quota goes to members that have most already: theirs need not move."""
    each, longer = divmod(total, len(sizes))
    quotas = dict.fromkeys(sizes, each)
    if longer:
        for member_id in sorted(sizes, key=lambda member_id: sizes[member_id] <= each)[:longer]:
            quotas[member_id] += 1
    return quotas


def _cut(assigned: Assignment, quota: int, taken: Taken) -> Assignment:
    """Keeps the first partitions up to the quota, and frees the rest."""
    kept: dict[UUID, frozenset[int]] = {}
    for topic_id, numbers in assigned.items():
        stay = frozenset(sorted(numbers)[:quota])
        quota -= len(stay)
        if stay:
            kept[topic_id] = stay
        taken[topic_id] -= numbers - stay
    return kept


def _free(counts: dict[UUID, int], taken: Taken) -> Iterator[tuple[UUID, int]]:
    for topic_id, count in counts.items():
        owned = taken.get(topic_id, ())
        if len(owned) < count:
            for number in range(count):
                if number not in owned:
                    yield topic_id, number


def _with(assigned: Assignment, more: Iterable[tuple[UUID, int]]) -> Assignment:
    """`more` comes topic by topic."""
    added: dict[UUID, Set[int]] = {}
    numbers: list[int] = []
    current: UUID | None = None
    for topic_id, number in more:
        if topic_id is not current:
            if current is not None:
                added[current] = assigned.get(current, frozenset()) | frozenset(numbers)
            current, numbers = topic_id, []
        numbers.append(number)
    if current is not None:
        added[current] = assigned.get(current, frozenset()) | frozenset(numbers)
    return {**assigned, **added}

"""Which brokers hold a new partition: racks apart, leaders in turn, few peers for each broker.

Brokers are dealt into groups of at most 31, so that a broker replicates with at most 30 peers however
large the cluster is. Dealing goes rack by rack, so each group has its share of every rack. A group is
laid out with its racks interleaved. Leaders go round all brokers; followers come from the leader's group,
from racks not used yet while there are any. The start of the followers moves on with each round, so the
load of a lost broker falls on its whole group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.core.errors import InvalidReplicationFactor

LARGEST_GROUP = 31


class Candidate(NamedTuple):
    broker_id: int
    rack: str | None = None
    fenced: bool = False
    """A fenced broker never leads, and holds a replica only if the others do not suffice."""


def place(
    candidates: Iterable[Candidate], *, partitions: int, replication_factor: int, start: int
) -> list[tuple[int, ...]]:
    """The replicas of each partition, the leader first. `start` varies which broker comes first."""
    brokers = sorted(candidates)
    if replication_factor <= 0:
        raise InvalidReplicationFactor(f"a replication factor of {replication_factor} is not positive")
    if not any(not broker.fenced for broker in brokers):
        raise InvalidReplicationFactor("no broker is alive to lead a partition")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor} needs as many brokers; {len(brokers)} are registered"
        )
    if len(brokers) == 1:
        return [(brokers[0].broker_id,)] * partitions
    groups = deal_groups(brokers, replication_factor)
    leaders = [place for place in _round_robin(groups) if not groups[place[0]][place[1]].fenced]
    placed = []
    for partition in range(partitions):
        turn, at = divmod(start + partition, len(leaders))
        group, member = leaders[at]
        placed.append(_replicas(groups[group], member, turn, replication_factor))
    return placed


def deal_groups(brokers: Sequence[Candidate], replication_factor: int) -> list[list[Candidate]]:
    """Brokers in groups that differ by one in size at most, each with its share of every rack."""
    count = -(-len(brokers) // LARGEST_GROUP)
    if replication_factor > len(brokers) // count:
        count = 1
    by_rack = sorted(brokers, key=lambda broker: (broker.rack or "", broker.broker_id))
    return [_interleave(by_rack[number::count]) for number in range(count)]


def _interleave(brokers: Sequence[Candidate]) -> list[Candidate]:
    """Neighbours are of different racks as far as the racks go."""
    seen: dict[str | None, int] = {}
    keyed: list[tuple[int, int, Candidate]] = []
    for broker in brokers:
        turn = seen.get(broker.rack, 0)
        seen[broker.rack] = turn + 1
        keyed.append((turn, len(keyed), broker))
    keyed.sort()
    return [broker for _, _, broker in keyed]


def _round_robin(groups: Sequence[Sequence[Candidate]]) -> list[tuple[int, int]]:
    """(group, member) of every broker, so that neighbours are of different groups."""
    longest = max(len(group) for group in groups)
    return [(g, m) for m in range(longest) for g in range(len(groups)) if m < len(groups[g])]


def _replicas(group: Sequence[Candidate], leader: int, turn: int, factor: int) -> tuple[int, ...]:
    chosen = [group[leader]]
    used = {group[leader].rack}
    others = len(group) - 1
    # The members after the leader, from one that moves with the turn.
    rest = [group[(leader + 1 + (turn + i) % others) % len(group)] for i in range(others)]
    pool = [broker for broker in rest if not broker.fenced]
    fenced = [broker for broker in rest if broker.fenced]
    while len(chosen) < factor:
        if not pool:
            pool, fenced = fenced, []
        fresh = next((i for i, broker in enumerate(pool) if broker.rack not in used), None)
        if fresh is None:
            # Every rack of the pool is used: begin again, so that racks stay evenly loaded.
            used.clear()
            fresh = 0
        broker = pool.pop(fresh)
        used.add(broker.rack)
        chosen.append(broker)
    return tuple(broker.broker_id for broker in chosen)

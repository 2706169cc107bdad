"""Where the replicas of one topic go when somebody names the brokers, or another number of replicas."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from headrace.controller.balancing import Racks, Replicas, plan_rebalance
from headrace.core.errors import InvalidReplicationFactor

K = TypeVar("K", bound=Hashable)


def spread_topic(
    partitions: Mapping[K, Sequence[int]], racks: Racks, replication_factor: int | None = None
) -> dict[K, Replicas]:
    """Every partition on `racks` alone, evenly. A replica that is on one of them already stays if it can.

    The factor of each partition stays as it is unless one is given. The result names all partitions.
    """
    held = dict.fromkeys(sorted(racks), 0)
    placed: dict[K, Replicas] = {}
    for key, before in partitions.items():
        factor = len(before) if replication_factor is None else replication_factor
        if factor > len(racks):
            raise InvalidReplicationFactor(f"{factor} replicas need as many brokers; {len(racks)} are named")
        kept = [broker_id for broker_id in before if broker_id in racks][:factor]
        while len(kept) < factor:
            kept.append(_next(kept, held, racks))
        for broker_id in kept:
            held[broker_id] += 1
        placed[key] = tuple(kept)
    return {**placed, **plan_rebalance(placed, racks)}


def _next(chosen: Sequence[int], held: Mapping[int, int], racks: Racks) -> int:
    """One of a rack that is not used yet, and of those the one that holds least."""
    used = {racks[broker_id] for broker_id in chosen}
    free = [broker_id for broker_id in held if broker_id not in chosen]
    return min(free, key=lambda broker_id: (racks[broker_id] in used, held[broker_id], broker_id))

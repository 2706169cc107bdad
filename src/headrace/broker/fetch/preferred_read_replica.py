"""Which replica a consumer should read from: one in its own rack, if there is one (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.metadata_cache import MetadataCache

if TYPE_CHECKING:
    from headrace.replication.partition import Partition

STAY: Final = -1
"""With the leader."""


def preferred_read_replica(
    metadata: MetadataCache, partition: Partition, rack: str, fetch_offset: int
) -> int:
    """The in-sync follower in `rack` that is furthest among those that hold `fetch_offset`."""
    brokers = metadata.image.brokers
    leader = brokers.get(partition.leader_id)
    if leader is not None and leader.rack == rack:
        return STAY
    best, best_end = STAY, -1
    for replica, end_offset in partition.readable_followers(fetch_offset):
        registration = brokers.get(replica)
        if (
            registration is not None
            and registration.rack == rack
            and not registration.fenced
            and end_offset > best_end
        ):
            best, best_end = replica, end_offset
    return best

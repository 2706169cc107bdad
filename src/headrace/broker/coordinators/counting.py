"""What a scrape reads of groups and transactions, gathered when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Final

from headrace.broker.coordinators.coordinators import Coordinators
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.groups.group import GroupType
from headrace.metrics.coordinators import CoordinatorCounts
from headrace.replication.partition import Partition

LATE_MS: Final = 5 * 60 * 1000
"""Beyond the longest timeout that a transaction may have, as in Kafka: until then it may be on its way."""


def count_coordinators(
    runtime: Runtime, partitions: PartitionTable, coordinators: Coordinators, size: int
) -> Generator[None, None, CoordinatorCounts]:
    """Pauses after each `size` groups, transactional ids or partitions: there may be many."""
    seen = 0
    groups: dict[GroupType, Counter[str]] = {kind: Counter() for kind in GroupType}
    for _, shard in coordinators.groups.loaded():
        for group in shard.groups:
            groups[group.type][group.state_name] += 1
            seen += 1
            if seen % size == 0:
                yield
    ids: Counter[str] = Counter()
    for _, held in coordinators.transactions.loaded():
        for transaction in list(held.transactions.values()):
            ids[transaction.state.shown] += 1
            seen += 1
            if seen % size == 0:
                yield
    producers = late = 0
    overdue_since = runtime.clock.wall_ms() - runtime.config.transaction_max_timeout_ms - LATE_MS
    for partition in list(partitions):
        producers += len(partition.log.producers)
        late += _is_late(partition, overdue_since)
        seen += 1
        if seen % size == 0:
            yield
    ends = coordinators.marker_manager
    return CoordinatorCounts(
        groups[GroupType.CLASSIC],
        groups[GroupType.CONSUMER],
        ids,
        ends.markers_to_route_again,
        ends.ends_to_write_again,
        producers,
        late,
    )


def _is_late(partition: Partition, since_ms: int) -> bool:
    if not partition.is_leader:
        return False
    oldest = partition.log.producers.oldest_undecided
    return oldest is not None and 0 < oldest.last_timestamp < since_ms

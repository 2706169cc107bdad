"""What a broker does by the clock leaves the loop to others."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from headrace.broker.storage.maintenance import PARTITIONS_PER_TURN, Maintenance
from headrace.replication.partition import Partition
from tests.unit.broker.replicas.leader_and_follower import FOLLOWER, LEADER, append, partition_of, row
from tests.unit.log.material import NOW
from tests.unit.replication.replicas import Listener

LOGS = 4 * PARTITIONS_PER_TURN


def maintenance_of(
    runtime: Any, *, logs: Any = None, partitions: Any = None, flusher: Any = None, replicas: Any = None
) -> Maintenance:
    """With the parts that a test needs."""
    unused: Any = None
    return Maintenance(runtime, unused, logs, partitions, flusher, replicas, unused, unused, unused)


async def test_logs_that_are_due_together_are_flushed_in_several_turns() -> None:
    logs = [SimpleNamespace(flush_is_due=lambda _now_ms: True) for _ in range(LOGS)]
    logs[-1].flush_is_due = lambda _now_ms: False  # somebody else has flushed it meanwhile
    flushed: list[Any] = []
    seen: list[int] = []
    maintenance = maintenance_of(
        SimpleNamespace(clock=SimpleNamespace(wall_ms=lambda: 0)),
        flusher=SimpleNamespace(flush=flushed.append),
        logs=SimpleNamespace(due_flushes=lambda _now_ms: list(logs)),
    )

    async def look() -> None:
        while len(flushed) < LOGS - 1:
            seen.append(len(flushed))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        group.create_task(maintenance._flush())
    assert flushed == logs[:-1]
    assert [after - before for before, after in pairwise(seen)] == [PARTITIONS_PER_TURN] * 3


async def retained(partition: Partition) -> list[Partition]:
    """All but the last of its three segments go. Which partitions are followed again, to report it."""
    reported: list[Partition] = []
    maintenance = maintenance_of(
        SimpleNamespace(loop=asyncio.get_running_loop()),
        partitions=SimpleNamespace(find=lambda *_: partition),
        replicas=SimpleNamespace(follow=reported.append),
    )
    assert await maintenance._remove_segments(partition, NOW) == 2
    assert partition.log.log_start_offset == partition.log.durable_start == 2
    assert await maintenance._remove_segments(partition, NOW) == 0
    return reported


def three_segments(broker_id: int) -> Partition:
    partition = partition_of(broker_id, segment_bytes=100, retention_bytes=1)
    partition.assign(row(broker_id, 0, isr=(broker_id,)), broker_id, 0.0)
    for _ in range(3):
        append(partition, b"x" * 20)
    return partition


async def test_what_retention_deletes_at_a_leader_is_told_to_its_readers() -> None:
    """An idle follower hears of nothing else."""
    partition, listener = three_segments(LEADER), Listener()
    partition.watch(listener, as_replica=True)
    assert await retained(partition) == []
    assert (listener.committed, listener.changes) == ([0], 0), "once, and it wakes nobody"


async def test_a_follower_reports_what_its_own_retention_has_deleted() -> None:
    """Its leader may wait for that before it admits it."""
    partition = three_segments(FOLLOWER)
    partition.assign(row(LEADER, 1), FOLLOWER, 0.0)
    assert await retained(partition) == [partition]

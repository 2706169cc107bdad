"""What a broker does by the clock leaves the loop to others."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from headrace.broker.health_report import HealthReport
from headrace.broker.maintenance import PARTITIONS_PER_TURN, Maintenance
from headrace.metrics.registry import BrokerMetrics

LOGS = 4 * PARTITIONS_PER_TURN


async def test_logs_that_are_due_together_are_flushed_in_several_turns() -> None:
    logs = [SimpleNamespace(flush_is_due=lambda _now_ms: True) for _ in range(LOGS)]
    logs[-1].flush_is_due = lambda _now_ms: False  # somebody else has flushed it meanwhile
    flushed: list[Any] = []
    seen: list[int] = []
    broker: Any = SimpleNamespace(
        clock=SimpleNamespace(wall_ms=lambda: 0),
        health=HealthReport(),
        metrics=BrokerMetrics(),
        flusher=SimpleNamespace(flush=flushed.append),
        logs=SimpleNamespace(due_flushes=lambda _now_ms: list(logs)),
    )

    async def look() -> None:
        while len(flushed) < LOGS - 1:
            seen.append(len(flushed))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        group.create_task(Maintenance(broker)._flush())
    assert flushed == logs[:-1]
    assert [after - before for before, after in pairwise(seen)] == [PARTITIONS_PER_TURN] * 3

"""Disks whose syncs take their time: whoever waits for one does so in a thread."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headrace.client.broker_health import BrokerHealth, ask_brokers
from headrace.client.cluster import Cluster
from tests.chaos.conftest import MakeBed
from tests.chaos.judged import judged
from tests.chaos.testbed import Equipment, Testbed
from tests.chaos.workload import TOPIC
from tests.cluster_process import eventually

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("headrace_only")]

SLOWEST = 2.0
LATE_MS = 1000
"""Half of the slowest sync, and far more than a busy machine makes of a loop that waits for none."""
SYNCED = {"flush.messages": "1"}
"""An acknowledgement waits for the disks of all replicas."""


def told(bed: Testbed) -> dict[int, BrokerHealth]:
    async def ask() -> dict[int, BrokerHealth]:
        async with Cluster(bed.cluster.bootstrap) as cluster:
            return await ask_brokers(cluster, bed.numbers)

    return asyncio.run(ask())


def worst_lag_ms(bed: Testbed) -> int:
    """Of all brokers; none says anything in its first ten seconds."""
    found: list[int] = []

    def all_say() -> bool:
        figures = [each.figures.get("loop.lag.p99.ms") for each in told(bed).values()]
        found[:] = [int(each) for each in figures if each is not None]
        return len(found) == len(bed.numbers)

    eventually(all_say, 60, "every broker says how late it is")
    return max(found)


def lines(bed: Testbed, event: str) -> list[str]:
    outputs = [bed.cluster.brokers[number].output.read_text() for number in bed.numbers]
    return [line for output in outputs for line in output.splitlines() if event in line]


def test_fault_43_slow_syncs_hold_up_nobody_but_those_who_wait_for_them(
    make_bed: MakeBed, tmp_path: Path
) -> None:
    """From 20 ms, a spinning disk, to two seconds, one that is about to fail. A loop that waited for a sync
    would be late by that, and one that waited for a few of them would be fenced."""
    bed = make_bed(Equipment(faults=True))
    with judged(bed, tmp_path, [[1, 2, 3]], configs=SYNCED) as load:
        for seconds in (0.02, 0.3, SLOWEST):
            for number in bed.numbers:
                bed.faults[number].slow_syncs(seconds)
            load.wait_acknowledged(100, 60)
        assert worst_lag_ms(bed) < LATE_MS
        assert bed.cluster.leader(TOPIC) == 1
        assert not lines(bed, "broker fenced")

        # A follower that was away cuts its log and makes up for what it missed, sync by sync.
        bed.cluster.kill(3)
        load.wait_acknowledged(20, 60)
        bed.cluster.restart(3)
        bed.cluster.wait_in_sync(TOPIC, 90)
        fenced = lines(bed, "broker fenced")
        assert all('"broker_id": 3' in line for line in fenced), fenced
        assert worst_lag_ms(bed) < LATE_MS

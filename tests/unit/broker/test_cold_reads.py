"""What one fetch wants of a disk is brought a few at a time."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, Future
from types import SimpleNamespace
from typing import Any

from headrace.broker.fetch.cold_reads import MOST_AT_ONCE, ColdReads
from headrace.broker.fetch.read_result import ColdPart
from headrace.log.read_state import ColdRead
from headrace.metrics.scrub import ScrubMetrics
from headrace.replication.partition import Partition
from headrace.testing.disk import SimulatedDisk
from tests.unit.replication.replicas import append, new_partition, row


class Threads(Executor):
    """Does nothing until it is told to."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, *_: Any) -> Future[Any]:  # type: ignore[override] # nothing is ever called
        self.futures.append(Future())
        return self.futures[-1]


def cold_part(partition: Partition) -> ColdPart:
    return ColdPart(partition, ColdRead(partition.log.active_segment, 0), 100)


def written() -> Partition:
    partition = new_partition(SimulatedDisk())
    partition.assign(row(1, 1, (1,)), 1, 0.0)
    append(partition, b"a")
    return partition


async def test_a_fetch_of_much_that_is_cold_leaves_threads_to_others() -> None:
    integrity: Any = SimpleNamespace(on_read_ahead=lambda *_: None)
    threads = Threads()
    reads = ColdReads(asyncio.get_running_loop(), threads, integrity, ScrubMetrics())
    parts = [cold_part(written()) for _ in range(2 * MOST_AT_ONCE + 10)]
    then: list[str] = []
    reads.bring(parts, lambda: then.append("much"))
    reads.bring([cold_part(written())], lambda: then.append("little"))
    assert len(threads.futures) == MOST_AT_ONCE + 1
    threads.futures[-1].set_result(None)
    await asyncio.sleep(0.01)
    assert then == ["little"]
    at = 0
    while then == ["little"]:
        waiting = [future for future in threads.futures if not future.done()]
        assert 0 < len(waiting) <= MOST_AT_ONCE
        waiting[0].set_result(None)
        at += 1
        await asyncio.sleep(0.001)
    assert then == ["little", "much"]
    assert at == len(parts)

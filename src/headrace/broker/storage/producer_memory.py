"""The memory for what partitions remember of producers: counted when one is new, bounded, made free again.

Whoever is known is never refused, and a producer costs nothing after its first batch. When the budget is
nearly used up, those that are silent for a quarter of an hour are forgotten, which is longer than clients
send a batch again by their defaults. Without that a flood would keep out whoever comes later for a day.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.broker.coordinators.state_estimate import StateEstimate
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.log.manager import LogManager

PRODUCER_BYTES: Final = 1300
"""With five batches, the most that is remembered."""
QUIET_MS: Final = 15 * 60 * 1000
NEARLY: Final = 0.8
PARTITIONS_PER_TURN: Final = 50


class ProducerMemory:
    def __init__(self, runtime: Runtime, logs: LogManager, partitions: PartitionTable) -> None:
        self._runtime = runtime
        self._logs = logs
        self._partitions = partitions
        self._estimate = StateEstimate(runtime.memory.producers, self._measure, runtime.clock.monotonic)

    def start(self) -> None:
        for directory in self._logs.directories:
            directory.on_new_producer = self.admits

    def admits(self) -> bool:
        return self._estimate.admits(PRODUCER_BYTES)

    def _measure(self) -> int:
        return PRODUCER_BYTES * sum(len(partition.log.producers) for partition in self._partitions)

    async def tidy(self) -> None:
        """Once in a while, in slices: it looks at every producer if there are many."""
        share = self._runtime.memory.producers
        self._estimate.correct(self._measure())
        if share.used_bytes < NEARLY * share.limit_bytes:
            return
        quiet_ms = min(QUIET_MS, self._runtime.config.producer_id_expiration_ms)
        gone = 0
        for count, partition in enumerate(list(self._partitions), 1):
            if partition.log.is_open and len(partition.log.producers):
                gone += partition.log.producers.forget_silent(self._runtime.monotonic_ms(), quiet_ms)
            if count % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)
        self._estimate.correct(self._measure())
        if gone:
            self._runtime.log.warning("idle producer ids expired early: their memory is full", producers=gone)

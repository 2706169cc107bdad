"""The smallest coordinator there is: named counters, over real partitions on a simulated disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.shard_host import ShardHost
from headrace.broker.coordinators.shard_terms import Terms
from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.kinds import TRANSACTION_KINDS
from headrace.coordinators.shard import Operation, Timers
from headrace.core.completion import Completion
from headrace.core.ids import TopicPartition
from headrace.core.timers import TimerQueue
from headrace.metrics.registry import TopicMetrics
from headrace.protocol.stored.transaction_log_key import TransactionLogKey
from headrace.protocol.stored.transaction_log_value import TransactionLogValue
from headrace.replication.partition import Partition
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, open_at, topic_config
from tests.unit.replication.replicas import TOPIC_ID, row

TOPIC = "__counters"
LOCAL = 1


def counted(name: str, number: int) -> CoordinatorRecord:
    """A record of the transaction log stands for a counter: it has a string and a number."""
    return CoordinatorRecord(
        TransactionLogKey(transactional_id=name), TransactionLogValue(producer_id=number)
    )


class CounterShard:
    def __init__(self, timers: Timers, index: int, epoch: int) -> None:
        self.timers, self.index, self.epoch = timers, index, epoch
        self.numbers: dict[str, int] = {}
        self.open: dict[int, dict[str, int]] = {}
        """By producer: what its transaction would set."""
        self.offsets: list[int] = []
        self.loaded_at: int | None = None
        self.waiting: list[Completion[Any]] = []

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:
        assert isinstance(record.key, TransactionLogKey)
        assert isinstance(record.value, TransactionLogValue)
        if record.key.transactional_id == "poison":
            raise KeyError("this record cannot be understood")
        self.numbers[record.key.transactional_id] = record.value.producer_id
        self.offsets.append(offset)

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, timestamp_ms: int, producer_id: int
    ) -> None:
        assert isinstance(record.key, TransactionLogKey)
        assert isinstance(record.value, TransactionLogValue)
        opened = self.open.setdefault(producer_id, {})
        opened[record.key.transactional_id] = record.value.producer_id
        self.offsets.append(offset)

    def replay_end(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        opened = self.open.pop(producer_id, {})
        if committed:
            self.numbers.update(opened)

    def on_loaded(self, now_ms: int) -> Decision[None]:
        self.loaded_at = now_ms
        return Decision((), None)


def add(name: str, by: int = 1, **rest: Any) -> Operation[CounterShard]:
    def operation(shard: CounterShard, completion: Completion[Any], now_ms: int) -> Decision[int]:
        number = shard.numbers.get(name, 0) + by
        return Decision((counted(name, number),), number, **rest)

    return operation


def get(name: str, *, reveals: bool = True) -> Operation[CounterShard]:
    def operation(shard: CounterShard, completion: Completion[Any], now_ms: int) -> Decision[int]:
        return Decision((), shard.numbers.get(name, 0), reveals=reveals)

    return operation


def park(shard: CounterShard, completion: Completion[Any], now_ms: int) -> Decision[Any]:
    shard.waiting.append(completion)
    return Decision()


def wake(name: str) -> Operation[CounterShard]:
    """Adds one, and answers whoever is parked with the number."""

    def operation(shard: CounterShard, completion: Completion[Any], now_ms: int) -> Decision[int]:
        number = shard.numbers.get(name, 0) + 1
        answers = [(each, number) for each in shard.waiting]
        shard.waiting.clear()
        return Decision((counted(name, number),), number, answers)

    return operation


class Counters:
    """A coordinator of one partition on broker 1. With other members in the ISR nothing is committed before
    `replicate` says that they have it."""

    def __init__(
        self,
        *,
        isr: tuple[int, ...] = (1,),
        disk: SimulatedDisk | None = None,
        commit_timeout: float = 5.0,
        lead: bool = True,
        **settings: Any,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.disk = disk or SimulatedDisk()
        self.effects: list[tuple[int, int, object]] = []
        self.logged: list[str] = []
        self.shards: list[CounterShard] = []
        self.epoch = 0
        self.partition = self.host(**settings)
        self.node: Any = SimpleNamespace(is_current=True)
        self.is_elsewhere = False
        """Whether another replica has what this one has."""
        self.doubted: list[int] = []
        runtime: Any = SimpleNamespace(
            clock=SimpleNamespace(wall_ms=lambda: NOW),
            loop=self.loop,
            timers=TimerQueue(self.loop),
            log=SimpleNamespace(error=self._on_log, warning=self._on_log),
            offload=self._offload,
        )
        metadata: Any = SimpleNamespace(
            image=SimpleNamespace(topic=lambda name: range(1) if name == TOPIC else None)
        )
        flusher: Any = SimpleNamespace(flush=self._flush)
        host = ShardHost(runtime, self.node, flusher, self._doubt, lambda _: self.is_elsewhere)
        terms = Terms(
            TRANSACTION_KINDS,
            self._make,
            lambda *effect: self.effects.append(effect),
            compression=0,
            commit_timeout_seconds=commit_timeout,
        )
        self.coordinator: Coordinator[CounterShard] = Coordinator(host, metadata, TOPIC, terms)
        self.coordinator.adopt(self.partition)
        if lead:
            self.lead(isr)

    def host(self, **settings: Any) -> Partition:
        name = TopicPartition(TOPIC, 0)
        config = topic_config(cleanup_policy=frozenset({"compact"}), **settings)
        log = open_at(self.disk, "/data", partition=name, config=config)
        return Partition(name, TOPIC_ID, log, TopicMetrics())

    def _make(self, timers: Timers, index: int, epoch: int) -> CounterShard:
        self.shards.append(CounterShard(timers, index, epoch))
        return self.shards[-1]

    def _on_log(self, event: str, **_: Any) -> None:
        self.logged.append(event)

    async def _offload(self, call: Callable[[], None]) -> None:
        await asyncio.sleep(0)
        call()

    def _flush(self, log: Any) -> None:
        job = log.take_flush()
        job.run()
        job.done()

    # --- the part it plays -------------------------------------------------------------------------------

    def lead(self, isr: tuple[int, ...] = (1,)) -> None:
        self.epoch += 1
        self.partition.assign(row(LOCAL, self.epoch, isr), LOCAL, 0.0)

    def follow(self) -> None:
        self.epoch += 1
        self.partition.assign(row(2, self.epoch), LOCAL, 0.0)

    async def replicate(self, up_to: int | None = None) -> None:
        """Broker 2 has everything up to there."""
        end = self.partition.log.end_offset if up_to is None else up_to
        self.partition.on_replica_fetch(2, 100, end, 0.0)
        await self.turn()

    def _doubt(self, _partition: Partition, offset: int) -> asyncio.Future[None]:
        self.doubted.append(offset)
        looked_at: asyncio.Future[None] = self.loop.create_future()
        looked_at.set_result(None)
        return looked_at

    async def loaded(self) -> CounterShard:
        for _ in range(10_000):
            found = next(self.coordinator.loaded(), None)
            if found is not None:
                return found[1]
            await asyncio.sleep(0)
        raise AssertionError("the shard was never loaded")

    async def turn(self) -> None:
        """Let what was decided be written."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)

"""The coordinators of one broker: each keeps its state in an internal topic, and follows who leads it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.hosted_shard import Terms
from headrace.broker.coordinators.image_topics import ImageTopics
from headrace.broker.coordinators.internal_topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC, InternalTopics
from headrace.broker.coordinators.markers import end_batch
from headrace.broker.coordinators.pattern_resolver import PatternResolver
from headrace.broker.coordinators.state_estimate import StateEstimate
from headrace.broker.transactions.ends import TransactionEnds
from headrace.broker.transactions.membership_questions import Question, ask_itself
from headrace.broker.transactions.requests import TransactionRequests
from headrace.broker.transactions.terms import transaction_terms
from headrace.controller.delta import MetadataDelta
from headrace.coordinators.kinds import GROUP_KINDS
from headrace.coordinators.shard import Timers
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.groups.consumer.topic_lookups import TopicLookups
from headrace.groups.group_config import GroupConfig
from headrace.groups.offsets.removals import RemovedTopicName
from headrace.groups.offsets.room import OffsetRoom
from headrace.groups.shard import GroupShard
from headrace.groups.sizes import size_of
from headrace.protocol.batch import read_header
from headrace.replication.partition import ACKS_ALL, Partition
from headrace.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

SLICE_SECONDS: Final = 0.005
"""What may be forgotten at once when topics go."""


class Coordinators:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_topic: dict[str, Coordinator[Any]] = {}
        self._forgetting: dict[asyncio.Task[None], None] = {}
        self.internal_topics = InternalTopics(broker)
        self.groups: Coordinator[GroupShard] = self._add(GROUPS_TOPIC, self._group_terms())
        self.transaction_ends = TransactionEnds(broker)
        self.transaction_requests = TransactionRequests(broker)
        self.transactions: Coordinator[TransactionShard] = self._add(
            TRANSACTIONS_TOPIC, transaction_terms(broker, self.transaction_ends.begin)
        )

        now = broker.clock.monotonic
        self.group_state = StateEstimate(broker.memory.groups, self._group_bytes, now)
        self.transaction_state = StateEstimate(broker.memory.transactions, self._transaction_bytes, now)
        broker.store.subscribe(self._on_delta)

    def _add(self, topic: str, terms: Terms[Any]) -> Coordinator[Any]:
        made = self._by_topic[topic] = Coordinator(self._broker, topic, terms)
        return made

    def _group_terms(self) -> Terms[GroupShard]:
        broker = self._broker
        topics = ImageTopics(broker)
        lookups = TopicLookups(topics, patterns_elsewhere=True)
        self.patterns = PatternResolver(lookups.patterns, broker.work_thread, broker.clock)

        room = OffsetRoom(broker.memory.offsets, self._measure_offsets)

        def make(timers: Timers, _index: int, _epoch: int) -> GroupShard:
            config = GroupConfig.of(broker.config)
            return GroupShard(timers, topics, config, broker.random, lookups, broker.memory.groups, room)

        return Terms(
            GROUP_KINDS,
            make,
            _no_effect,
            broker.config.offsets_topic_compression_codec,
            broker.config.offsets_commit_timeout_ms / 1000,
        )

    def _measure_offsets(self) -> None:
        """Exact, and quick: each shard knows its own."""
        sizes = (shard.offsets.table.size_bytes for _, shard in self.groups.loaded())
        self._broker.memory.offsets.used_bytes = sum(sizes)

    def count_parked(self) -> int:
        return sum(each.count_parked() for each in self._by_topic.values())

    def _group_bytes(self) -> int:
        return sum(size_of(shard.groups) for _, shard in self.groups.loaded())

    def _transaction_bytes(self) -> int:
        return sum(shard.size_bytes() for _, shard in self.transactions.loaded())

    def _on_delta(self, delta: MetadataDelta) -> None:
        """Offsets in topics that are gone go as well, or they would hold for the next topic of that name."""
        if delta.removed_topics:
            removed = [RemovedTopicName(topic.name, topic.topic_id) for topic in delta.removed_topics]
            shards = iter([index for index, _ in self.groups.loaded()])
            began = self._broker.clock.monotonic()
            for index in shards:
                self._forget_topics(index, removed)
                if self._broker.clock.monotonic() - began > SLICE_SECONDS:
                    task = spawn(
                        "offsets of topics that are gone",
                        self._forget_later(shards, removed),
                        self._broker.loop,
                    )
                    self._forgetting[task] = None
                    task.add_done_callback(lambda done: self._forgetting.pop(done, None))
                    break

    async def _forget_later(self, shards: Iterator[int], removed: list[RemovedTopicName]) -> None:
        """Many groups, or many offsets: each shard has a turn. An offset that is committed meanwhile to a new
        topic of the same name has that one's id, and stays."""
        for index in shards:
            await self._broker.turns.next()
            self._forget_topics(index, removed)

    def _forget_topics(self, index: int, removed: list[RemovedTopicName]) -> None:
        self.groups.ask_partition(index, lambda shard, *_: shard.offsets.on_topics_removed(removed))

    def on_config_changed(self) -> None:
        config = GroupConfig.of(self._broker.config)
        for _, shard in self.groups.loaded():
            shard.configure(config)

    # --- the partitions ----------------------------------------------------------------------------------

    def adopt(self, partition: Partition) -> None:
        """A partition is hosted from now on; one of an internal topic is followed."""
        coordinator = self._by_topic.get(partition.topic_partition.topic)
        if coordinator is not None:
            coordinator.adopt(partition)

    def release(self, partition: Partition) -> None:
        coordinator = self._by_topic.get(partition.topic_partition.topic)
        if coordinator is not None:
            coordinator.release(partition)

    def append_marker(
        self, partition: Partition, producer: tuple[int, int], *, coordinator_epoch: int, committed: bool
    ) -> Completion[None]:
        """End a producer's transaction in any partition. If a shard is on it, the shard is told as well, in
        order with what it has decided itself. Decided when the marker is committed."""
        now_ms = self._broker.clock.wall_ms()
        batch = end_batch(producer, coordinator_epoch=coordinator_epoch, committed=committed, now_ms=now_ms)
        coordinator = self._by_topic.get(partition.topic_partition.topic)
        hosted = None if coordinator is None else coordinator.hosted(partition)
        if hosted is not None:
            return hosted.append_marker(batch, producer, committed=committed)
        waiter = _MarkerWaiter()
        try:
            result = partition.append(
                batch, read_header(batch), acks=ACKS_ALL, now_ms=now_ms, from_client=False
            )
        except HeadraceError as error:
            waiter.completion.fail(error)
        else:
            if partition.must_sync_before_ack:
                self._broker.flusher.flush(partition.log)
            partition.await_commit(result.last_offset + 1, waiter)
        return waiter.completion

    def ask_itself(self, question: Question) -> None:
        """About a transaction that this broker is the coordinator of."""
        ask_itself(self._broker, question)

    def stop(self) -> None:
        """On a clean stop, and on one that is not: what is held is refused, so that nothing waits on it."""
        self.internal_topics.stop()
        for task in list(self._forgetting):
            task.cancel()
        self.transaction_ends.stop()
        self.transaction_requests.stop()
        for coordinator in self._by_topic.values():
            coordinator.stop()


class _MarkerWaiter:
    """Implements replication.waiting.CommitWaiter."""

    __slots__ = ("completion",)

    def __init__(self) -> None:
        self.completion: Completion[None] = Completion()

    def on_decided(self, _token: int, error: HeadraceError | None) -> None:
        if error is None:
            self.completion.complete(None)
        else:
            self.completion.fail(error)


def _no_effect(_index: int, _epoch: int, effect: object) -> None:
    raise AssertionError(f"groups have no effects, and this is one: {effect!r}")

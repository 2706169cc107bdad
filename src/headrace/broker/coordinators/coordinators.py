"""The coordinators of one broker: each keeps its state in an internal topic, and follows who leads it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from headrace.broker.cluster.channel import ControllerChannel
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.group_configs import GroupConfigs
from headrace.broker.coordinators.image_topics import ImageTopics
from headrace.broker.coordinators.internal_topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC, InternalTopics
from headrace.broker.coordinators.pattern_resolver import PatternResolver
from headrace.broker.coordinators.producer_ids import ProducerIds
from headrace.broker.coordinators.shard_host import ShardHost
from headrace.broker.coordinators.shard_terms import Terms
from headrace.broker.coordinators.state_estimate import StateEstimate
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.transactions.marker_appends import MarkerAppends
from headrace.broker.transactions.marker_manager import TransactionMarkerManager
from headrace.broker.transactions.patient_requests import PatientRequests, TransactionRequests
from headrace.broker.transactions.transaction_terms import transaction_terms
from headrace.broker.transactions.verification import Verifications
from headrace.controller.delta import MetadataDelta
from headrace.coordinators.kinds import GROUP_KINDS
from headrace.coordinators.shard import Timers
from headrace.core.tasks import spawn
from headrace.groups.consumer.topic_lookups import TopicLookups
from headrace.groups.group_config import GroupConfig
from headrace.groups.offsets.removals import RemovedTopicName
from headrace.groups.offsets.room import OffsetRoom
from headrace.groups.shard import GroupShard
from headrace.groups.sizes import size_of
from headrace.replication.partition import Partition
from headrace.transactions.shard import TransactionShard

SLICE_SECONDS: Final = 0.005
"""What may be forgotten at once when topics go."""


class Coordinators:
    def __init__(
        self,
        host: ShardHost,
        metadata: MetadataCache,
        channel: ControllerChannel,
        partitions: PartitionTable,
        producer_ids: ProducerIds,
    ) -> None:
        runtime = self._runtime = host.runtime
        self._host = host
        self._metadata = metadata
        self._by_topic: dict[str, Coordinator[Any]] = {}
        self._forgetting: dict[asyncio.Task[None], None] = {}
        self.internal_topics = InternalTopics(runtime, metadata, channel)
        self.producer_ids = producer_ids
        self._group_configs = GroupConfigs(runtime, metadata)
        self.groups: Coordinator[GroupShard] = self._add(GROUPS_TOPIC, self._group_terms())
        self.transactions: Coordinator[TransactionShard] = self._add(
            TRANSACTIONS_TOPIC, transaction_terms(runtime, metadata, self._on_transaction_decided)
        )
        self.markers = MarkerAppends(runtime.clock, partitions, host.flusher, self._by_topic)
        self.marker_manager = TransactionMarkerManager(
            runtime, metadata, partitions, self.transactions, self.markers
        )
        self.patient = PatientRequests(runtime, self.transactions, self.marker_manager)
        self.transaction_requests = TransactionRequests(runtime, self.patient, producer_ids)
        self.verification = Verifications(runtime, metadata, partitions, self.patient)
        now = runtime.clock.monotonic
        self.group_state = StateEstimate(runtime.memory.groups, self._group_bytes, now)
        self.transaction_state = StateEstimate(runtime.memory.transactions, self._transaction_bytes, now)
        metadata.store.subscribe(self._on_delta)

    def _add(self, topic: str, terms: Terms[Any]) -> Coordinator[Any]:
        made = self._by_topic[topic] = Coordinator(self._host, self._metadata, topic, terms)
        return made

    def _on_transaction_decided(self, index: int, epoch: int, effect: Any) -> None:
        self.marker_manager.begin(index, epoch, effect)

    def _group_terms(self) -> Terms[GroupShard]:
        topics = ImageTopics(self._metadata)
        lookups = TopicLookups(topics, patterns_elsewhere=True)
        self.patterns = PatternResolver(lookups.patterns, self._runtime.work_thread, self._runtime.clock)

        room = OffsetRoom(self._runtime.memory.offsets, self._measure_offsets)

        def make(timers: Timers, _index: int, _epoch: int) -> GroupShard:
            config = GroupConfig.of(self._runtime.config)
            random, memory = self._runtime.random, self._runtime.memory.groups
            return GroupShard(timers, topics, config, random, lookups, memory, room, self._group_configs.own)

        return Terms(
            GROUP_KINDS,
            make,
            _no_effect,
            self._runtime.config.offsets_topic_compression_codec,
            self._runtime.config.offsets_commit_timeout_ms / 1000,
        )

    def _measure_offsets(self) -> None:
        """Exact, and quick: each shard knows its own."""
        sizes = (shard.offsets.table.size_bytes for _, shard in self.groups.loaded())
        self._runtime.memory.offsets.used_bytes = sum(sizes)

    def count_parked(self) -> int:
        return sum(each.count_parked() for each in self._by_topic.values())

    def _group_bytes(self) -> int:
        return sum(size_of(shard.groups) for _, shard in self.groups.loaded())

    def _transaction_bytes(self) -> int:
        return sum(shard.size_bytes() for _, shard in self.transactions.loaded())

    def _on_delta(self, delta: MetadataDelta) -> None:
        """Offsets in topics that are gone go as well, or they would hold for the next topic of that name."""
        self._group_configs.on_delta(delta)
        if delta.removed_topics:
            removed = [RemovedTopicName(topic.name, topic.topic_id) for topic in delta.removed_topics]
            shards = iter([index for index, _ in self.groups.loaded()])
            began = self._runtime.clock.monotonic()
            for index in shards:
                self._forget_topics(index, removed)
                if self._runtime.clock.monotonic() - began > SLICE_SECONDS:
                    task = spawn(
                        "offsets of topics that are gone",
                        self._forget_later(shards, removed),
                        self._runtime.loop,
                    )
                    self._forgetting[task] = None
                    task.add_done_callback(lambda done: self._forgetting.pop(done, None))
                    break

    async def _forget_later(self, shards: Iterator[int], removed: list[RemovedTopicName]) -> None:
        """Many groups, or many offsets: each shard has a turn. An offset that is committed meanwhile to a new
        topic of the same name has that one's id, and stays."""
        for index in shards:
            await self._runtime.turns.next()
            self._forget_topics(index, removed)

    def _forget_topics(self, index: int, removed: list[RemovedTopicName]) -> None:
        self.groups.ask_partition(index, lambda shard, *_: shard.offsets.on_topics_removed(removed))

    def on_config_changed(self) -> None:
        config = GroupConfig.of(self._runtime.config)
        for _, shard in self.groups.loaded():
            shard.configure(config)
        self._group_configs.on_config_changed()

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

    def stop(self) -> None:
        """On a clean stop, and on one that is not: what is held is refused, so that nothing waits on it."""
        self.internal_topics.stop()
        for task in list(self._forgetting):
            task.cancel()
        self.marker_manager.stop()
        self.transaction_requests.stop()
        self.verification.stop()
        for coordinator in self._by_topic.values():
            coordinator.stop()


def _no_effect(_index: int, _epoch: int, effect: object) -> None:
    raise AssertionError(f"groups have no effects, and this is one: {effect!r}")

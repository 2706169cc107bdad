"""A sink: what is new in its topics, as batches of exact offsets; its group's offsets follow."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.client.group_offsets import commit_offsets, committed_offsets
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.client.transaction_ends import Identity, Patience, is_current, take
from headrace.connect import common_settings
from headrace.connect.api import Connector, ConnectorFailure, Sink, StagedSink
from headrace.connect.config import Config
from headrace.connect.offset_service import group_of
from headrace.core.ids import TopicPartition
from headrace.spark.connect.batches import SinkBatch
from headrace.spark.connect.dead_letters import DeadLetters
from headrace.spark.connect.looping import ConnectorLoop
from headrace.spark.connect.naming import staged_id
from headrace.spark.connect.ranges import (
    Bounds,
    Linger,
    check_same,
    check_there,
    mark_of,
    next_ranges,
    starts,
)
from headrace.spark.connect.storing import ByDecision, ByTarget, Storing
from headrace.spark.sink.job import Jobs

_TOPICS_SECONDS: Final = 10.0
"""So long a new topic or partition may need until it is noticed."""
_HELD: Final = Patience(60_000)


class SinkLoop(ConnectorLoop):
    def work(self, connector: Connector) -> None:
        assert isinstance(connector, Sink)
        config, context = connector.config, self.context
        reading = _Reading(config, context.cluster)
        # Whoever takes it after us makes us stop: it is held by the one worker that may write.
        held = context.ask(take(context.cluster, f"headrace-connect/{self.name}", _HELD))
        positions: dict[TopicPartition, int] = {}
        letters = DeadLetters(context, config)
        linger = Linger(config[common_settings.BATCH_LINGER] / 1000)
        with self._storing(connector) as storing:
            storing.begin()
            while True:
                self.check()
                bounds = context.ask(reading.bounds())
                new = {partition: there for partition, there in bounds.items() if partition not in positions}
                if new:
                    group = context.ask(reading.committed(new))
                    positions |= starts(new, storing.known(), group)
                for partition, there in bounds.items():
                    check_there(partition, positions[partition], there)
                most = config[common_settings.BATCH_RECORDS]
                ranges = next_ranges(positions, bounds, most)
                if not linger.is_over(ranges, most, time.monotonic()):
                    self.alive()
                    self.wait(config[common_settings.POLL_INTERVAL] / 1000)
                    continue
                topics = frozenset(partition.topic for partition in ranges)
                self.begun(topics)
                ends = {**positions, **{partition: end for partition, (_, end) in ranges.items()}}
                batch = SinkBatch(context.spark, context.kafka, config, ranges, ends, letters.take)
                self._must_be_current(held)
                storing.store(batch, self.job)
                self._must_be_current(held)
                context.ask(commit_offsets(context.cluster, group_of(self.name), ends, reading.marks(ends)))
                positions = ends
                self.alive(topics)

    def _storing(self, sink: Sink) -> Storing:
        if isinstance(sink, StagedSink):
            return ByDecision(sink, Jobs(self.context.sink_options(staged_id(self.name))))
        return ByTarget(sink)

    def _must_be_current(self, held: Identity) -> None:
        if not self.context.ask(is_current(self.context.cluster, held)):
            raise ConnectorFailure(
                f"another worker has taken connector {self.name} since this one began: this one stops"
            )


class _Reading:
    """What is in the topics of a sink."""

    def __init__(self, config: Config, cluster: Cluster) -> None:
        self._config = config
        self._cluster = cluster
        self._partitions: list[TopicPartition] = []
        self._marks: dict[str, str] = {}
        """Of topics: which one it is, if another one has its name later."""
        self._until = 0.0

    async def bounds(self) -> dict[TopicPartition, Bounds]:
        if time.monotonic() >= self._until:
            topics = await self._cluster.retried(self._there)
            self._partitions = sorted(TopicPartition(name, index) for name, index, _ in topics)
            for name, topic_id in {(name, topic_id) for name, _, topic_id in topics if topic_id.int}:
                check_same(name, self._marks.setdefault(name, mark_of(topic_id)), mark_of(topic_id))
            # A topic that is not there yet is looked for again at once.
            self._until = time.monotonic() + (_TOPICS_SECONDS if self._partitions else 0)
        wanted = self._partitions
        first = await list_offsets(self._cluster, dict.fromkeys(wanted, EARLIEST))
        last = await list_offsets(self._cluster, dict.fromkeys(wanted, LATEST), read_committed=True)
        return {partition: Bounds(first[partition].offset, last[partition].offset) for partition in wanted}

    async def committed(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        group = group_of(self._config.name)
        found = (await committed_offsets(self._cluster, [group]))[group]
        for partition in partitions:
            if partition in found and partition.topic in self._marks:
                check_same(partition.topic, found[partition].metadata, self._marks[partition.topic])
        return {partition: entry.offset for partition, entry in found.items()}

    def marks(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """To be kept beside their offsets."""
        return {each: self._marks[each.topic] for each in partitions if each.topic in self._marks}

    async def _there(self) -> list[tuple[str, int, UUID]]:
        pattern = self._config.text(common_settings.TOPICS_REGEX)
        names = None if pattern else list(self._config[common_settings.TOPICS])
        reply = await self._cluster.metadata(names)
        return [
            (topic.name, partition.partition_index, topic.topic_id)
            for topic in reply.topics
            if topic.name is not None
            and not topic.error_code
            and (not pattern or (not topic.is_internal and re.fullmatch(pattern, topic.name)))
            for partition in topic.partitions
        ]

"""What a commit touched, so that a broker looks only at that. It holds no values: read the image."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from headrace.controller.image import ConfigResource


class RemovedTopic(NamedTuple):
    name: str
    topic_id: UUID
    partition_count: int


class MetadataDelta:
    __slots__ = (
        "brokers",
        "configs",
        "created_topics",
        "end_offset",
        "features",
        "partitions",
        "producer_ids",
        "removed_topics",
    )

    def __init__(self) -> None:
        self.end_offset = 0
        """The metadata log is applied up to here, exclusively."""
        self.created_topics: list[UUID] = []
        self.removed_topics: list[RemovedTopic] = []
        # Partitions that appeared or changed, ascending by first touch; none of a removed topic.
        self.partitions: dict[UUID, dict[int, None]] = {}
        self.configs: set[ConfigResource] = set()
        self.brokers: set[int] = set()
        self.features: set[str] = set()
        self.producer_ids = False

    def touch(self, topic_id: UUID, partition: int) -> None:
        touched = self.partitions.get(topic_id)
        if touched is None:
            touched = self.partitions[topic_id] = {}
        touched[partition] = None

    def forget(self, removed: RemovedTopic) -> None:
        self.partitions.pop(removed.topic_id, None)
        if removed.topic_id in self.created_topics:
            self.created_topics.remove(removed.topic_id)
        self.removed_topics.append(removed)

    def __bool__(self) -> bool:
        return bool(
            self.created_topics
            or self.removed_topics
            or self.partitions
            or self.configs
            or self.brokers
            or self.features
            or self.producer_ids
        )

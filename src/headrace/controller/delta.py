"""What a commit touched, so that a broker looks only at that. It holds no values but those that the image has
no longer: read the image."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from headrace.controller.image import ConfigResource
from headrace.controller.quota_image import QuotaEntity
from headrace.security.acl import AclRule


class RemovedTopic(NamedTuple):
    name: str
    topic_id: UUID
    partition_count: int


class AclChange(NamedTuple):
    rule: AclRule
    added: bool
    """False: it was removed."""


class MetadataDelta:
    __slots__ = (
        "acls",
        "brokers",
        "configs",
        "created_topics",
        "end_offset",
        "features",
        "partitions",
        "producer_ids",
        "quotas",
        "removed_topics",
        "scram_users",
        "tokens",
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
        # In the order in which they were committed: a rule may come and go in one batch.
        self.acls: list[AclChange] = []
        self.scram_users: set[str] = set()
        self.quotas: set[QuotaEntity] = set()
        self.tokens: set[str] = set()

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
            or self.acls
            or self.scram_users
            or self.quotas
            or self.tokens
        )

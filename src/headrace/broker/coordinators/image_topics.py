"""What groups may know of topics, read from the metadata image."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from headrace.broker.cluster.metadata_cache import MetadataCache


class ImageTopics:
    """Implements groups.topics_view.TopicsView."""

    __slots__ = ("_metadata",)

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata

    @property
    def version(self) -> int:
        return self._metadata.offset

    def names(self) -> Iterable[str]:
        return list(self._metadata.image.topics_by_name)

    def id_of(self, name: str) -> UUID | None:
        topic = self._metadata.image.topic(name)
        return None if topic is None else topic.topic_id

    def name_of(self, topic_id: UUID) -> str | None:
        topic = self._metadata.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int | None:
        topic = self._metadata.image.topic(name)
        return None if topic is None else len(topic)

    def racks(self, name: str, partition: int) -> tuple[str, ...]:
        image = self._metadata.image
        topic = image.topic(name)
        if topic is None or partition not in topic:
            return ()
        found = []
        for replica in topic.replicas(partition):
            registration = image.brokers.get(replica)
            if registration is not None and registration.rack is not None:
                found.append(registration.rack)
        return tuple(found)

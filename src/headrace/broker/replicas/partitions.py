"""The partitions that this broker hosts, found by name on the hot path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from headrace.core.errors import HeadraceError, NotLeader, StorageError, UnknownTopicOrPartition
from headrace.core.ids import TopicPartition
from headrace.replication.partition import Partition


class PartitionTable:
    __slots__ = ("_exists", "_offline", "_topics")

    def __init__(self, exists: Callable[[str, int], bool]) -> None:
        """`exists`: whether the metadata knows a partition that is not hosted here."""
        self._topics: dict[str, dict[int, Partition]] = {}
        self._offline: dict[TopicPartition, StorageError] = {}
        """Partitions that this broker should host and cannot: the log is damaged or its directory is gone."""
        self._exists = exists

    def get(self, topic: str, index: int) -> Partition:
        try:
            return self._topics[topic][index]
        except KeyError:
            raise self._missing(TopicPartition(topic, index)) from None

    def _missing(self, name: TopicPartition) -> HeadraceError:
        offline = self._offline.get(name)
        if offline is not None:
            return StorageError(str(offline))
        if self._exists(name.topic, name.partition):
            return NotLeader(f"{name} is at other brokers")
        return UnknownTopicOrPartition(f"this broker hosts no {name}")

    def set_offline(self, name: TopicPartition, error: StorageError) -> None:
        self._offline[name] = error

    @property
    def offline(self) -> Mapping[TopicPartition, StorageError]:
        return self._offline

    def is_offline(self, topic: str, index: int) -> bool:
        """Whether it should be served here and cannot be."""
        partition = self.find(topic, index)
        if partition is None:
            return TopicPartition(topic, index) in self._offline
        return not partition.log.directory.is_online

    def find(self, topic: str, index: int) -> Partition | None:
        partitions = self._topics.get(topic)
        return None if partitions is None else partitions.get(index)

    def add(self, partition: Partition) -> None:
        topic, index = partition.topic_partition
        self._topics.setdefault(topic, {})[index] = partition
        self._offline.pop(partition.topic_partition, None)

    def of_topic(self, topic: str) -> list[Partition]:
        return list(self._topics.get(topic, {}).values())

    def remove(self, name: TopicPartition) -> None:
        self._offline.pop(name, None)
        partitions = self._topics.get(name.topic, {})
        partitions.pop(name.partition, None)
        if not partitions:
            self._topics.pop(name.topic, None)

    def remove_topic(self, topic: str) -> list[Partition]:
        for name in [name for name in self._offline if name.topic == topic]:
            del self._offline[name]
        return list(self._topics.pop(topic, {}).values())

    def __iter__(self) -> Iterator[Partition]:
        for partitions in list(self._topics.values()):
            yield from list(partitions.values())

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """For the replication-offset checkpoint."""
        return {partition.topic_partition: partition.high_watermark for partition in self}

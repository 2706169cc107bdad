"""The partitions that this broker hosts, found by name on the hot path."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.core.errors import UnknownTopicOrPartition
from headrace.replication.partition import Partition


class PartitionTable:
    __slots__ = ("_topics",)

    def __init__(self) -> None:
        self._topics: dict[str, dict[int, Partition]] = {}

    def get(self, topic: str, index: int) -> Partition:
        try:
            return self._topics[topic][index]
        except KeyError:
            raise UnknownTopicOrPartition(f"this broker hosts no {topic}-{index}") from None

    def find(self, topic: str, index: int) -> Partition | None:
        partitions = self._topics.get(topic)
        return None if partitions is None else partitions.get(index)

    def add(self, partition: Partition) -> None:
        topic, index = partition.topic_partition
        self._topics.setdefault(topic, {})[index] = partition

    def of_topic(self, topic: str) -> list[Partition]:
        return list(self._topics.get(topic, {}).values())

    def remove_topic(self, topic: str) -> list[Partition]:
        return list(self._topics.pop(topic, {}).values())

    def __iter__(self) -> Iterator[Partition]:
        for partitions in list(self._topics.values()):
            yield from list(partitions.values())

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))

"""Partitions as most requests want them: the indexes of each topic."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.core.ids import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics

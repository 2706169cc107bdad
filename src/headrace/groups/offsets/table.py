"""The state: every offset of the groups of one shard. Only replay changes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import Final

from headrace.core.memory import MemoryShare
from headrace.groups.offsets.pending import OFFSET_BYTES, OffsetKey, PendingOffsets
from headrace.groups.offsets.stored_offset import StoredOffset

MAP_BYTES: Final = 400
"""A group, or a topic of a group."""

ByTopic = Mapping[str, Mapping[int, StoredOffset]]

_NONE: ByTopic = MappingProxyType({})


class OffsetTable:
    """Invariant: no map inside is empty, so a group that is in it has an offset."""

    __slots__ = ("_groups", "_memory", "pending", "size_bytes")

    def __init__(self, memory: MemoryShare | None = None) -> None:
        """`memory` is told of every change; when the table goes, whoever counts counts anew."""
        self._memory = memory
        self._groups: dict[str, dict[str, dict[int, StoredOffset]]] = {}
        self.pending = PendingOffsets(self._count)
        self.size_bytes = 0

    def get(self, group_id: str, topic: str, partition: int) -> StoredOffset | None:
        topics = self._groups.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def of_group(self, group_id: str) -> ByTopic:
        return self._groups.get(group_id, _NONE)

    def with_topics(self, names: Set[str]) -> Iterator[tuple[str, str, Mapping[int, StoredOffset]]]:
        """The groups that have offsets of one of these topics, and which."""
        for group_id, topics in self._groups.items():
            for topic in sorted(topics.keys() & names):
                yield group_id, topic, topics[topic]

    def group_ids(self) -> list[str]:
        return list(self._groups)

    def holds(self, group_id: str, topic: str, partition: int) -> bool:
        """Committed or pending: something is there that a tombstone would remove."""
        return self.get(group_id, topic, partition) is not None or self.pending.has(
            group_id, topic, partition
        )

    # --- changes: only replay calls these -----------------------------------------------------------------

    def put(self, group_id: str, topic: str, partition: int, stored: StoredOffset) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
            self._count(MAP_BYTES + len(group_id))
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
            self._count(MAP_BYTES + len(topic))
        old = partitions.get(partition)
        partitions[partition] = stored
        if old is None:
            self._count(OFFSET_BYTES + len(stored.metadata))
        elif stored.metadata or old.metadata:
            self._count(len(stored.metadata) - len(old.metadata))

    def _count(self, size: int) -> None:
        self.size_bytes += size
        if self._memory is not None:
            self._memory.used_bytes += size

    def remove(self, key: OffsetKey) -> None:
        """A tombstone also ends what transactions left pending there."""
        self.pending.forget(key)
        group_id, topic, partition = key
        topics = self._groups.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        if topics is None or partitions is None:
            return
        old = partitions.pop(partition, None)
        if old is not None:
            self._count(-OFFSET_BYTES - len(old.metadata))
        if not partitions:
            del topics[topic]
            self._count(-MAP_BYTES - len(topic))
        if not topics:
            del self._groups[group_id]
            self._count(-MAP_BYTES - len(group_id))

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Of a pending offset and one that was committed meanwhile, the one whose record lies behind counts:
        compaction may have removed the other, and every reader must come to the same."""
        for key, stored in self.pending.take(producer_id).items():
            if not committed:
                continue
            existing = self.get(*key)
            if existing is None or stored.record_offset > existing.record_offset:
                self.put(*key, stored)

"""Offsets that transactions have committed and that do not count yet, because the transactions go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headrace.groups.offsets.stored_offset import StoredOffset

OFFSET_BYTES: Final = 350
"""One offset and its place, without its metadata."""


class OffsetKey(NamedTuple):
    group_id: str
    topic: str
    partition: int


class PendingOffsets:
    """Invariant: both maps name the same pairs of producer and key, and hold nothing empty."""

    __slots__ = ("_count", "_producers", "by_producer")

    def __init__(self, count: Callable[[int], None] = lambda _: None) -> None:
        """`count` is told by how many bytes they become more or fewer."""
        self._count = count
        self.by_producer: dict[int, dict[OffsetKey, StoredOffset]] = {}
        # By group, then by topic and partition: the producers whose transactions have an offset there.
        self._producers: dict[str, dict[tuple[str, int], dict[int, None]]] = {}

    def put(self, producer_id: int, key: OffsetKey, stored: StoredOffset) -> None:
        offsets = self.by_producer.setdefault(producer_id, {})
        old = offsets.get(key)
        offsets[key] = stored
        self._count(_cost(stored) - (0 if old is None else _cost(old)))
        partitions = self._producers.setdefault(key.group_id, {})
        partitions.setdefault((key.topic, key.partition), {})[producer_id] = None

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        partitions = self._producers.get(group_id)
        return partitions is not None and (topic, partition) in partitions

    def has_group(self, group_id: str) -> bool:
        return group_id in self._producers

    def of_group(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Topic and partition of each, once however many transactions there are."""
        yield from self._producers.get(group_id, ())

    def forget(self, key: OffsetKey) -> None:
        """Of all transactions: the offset was deleted while they went on."""
        partitions = self._producers.get(key.group_id)
        if partitions is None:
            return
        for producer_id in partitions.pop((key.topic, key.partition), ()):
            offsets = self.by_producer[producer_id]
            self._count(-_cost(offsets.pop(key)))
            if not offsets:
                del self.by_producer[producer_id]
        if not partitions:
            del self._producers[key.group_id]

    def take(self, producer_id: int) -> dict[OffsetKey, StoredOffset]:
        """All that a producer left pending, which nobody holds any more."""
        taken = self.by_producer.pop(producer_id, {})
        for key, stored in taken.items():
            self._count(-_cost(stored))
            partitions = self._producers[key.group_id]
            producers = partitions[key.topic, key.partition]
            del producers[producer_id]
            if not producers:
                del partitions[key.topic, key.partition]
            if not partitions:
                del self._producers[key.group_id]
        return taken


def _cost(stored: StoredOffset) -> int:
    """Twice: by its producer, and by its group."""
    return 2 * OFFSET_BYTES + len(stored.metadata)

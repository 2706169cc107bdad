"""Which partition a record goes to, as Java's producer decides it.

A key is hashed by murmur2 with Kafka's seed, so that every client in the world sends the same key to the same
partition. Records without a key stay with one partition until a batch is full, then move on: batches are
fuller than with one record to each in turn, and the load is even over time.
"""

from __future__ import annotations

from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash of a key, as an unsigned number."""
    length = len(data)
    digest = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ (word >> 24)) * _MULTIPLIER & _MASK
        digest = (digest * _MULTIPLIER & _MASK) ^ word
    if whole < length:
        digest = (digest ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    digest = (digest ^ (digest >> 13)) * _MULTIPLIER & _MASK
    return digest ^ (digest >> 15)


def partition_for_key(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """Remembers, for each topic, where records without a key go at present."""

    __slots__ = ("_current", "_start")

    def __init__(self, start: int = 0) -> None:
        # Producers that start at different places do not all fill partition 0 first.
        self._start = start
        self._current: dict[str, int] = {}

    def choose(self, topic: str, key: bytes | None, partitions: int) -> int:
        if key is not None:
            return partition_for_key(key, partitions)
        return self._current.setdefault(topic, self._start) % partitions

    def batch_closed(self, topic: str) -> None:
        """A batch of this topic is full or sent: the next record without a key goes elsewhere."""
        if topic in self._current:
            self._current[topic] += 1

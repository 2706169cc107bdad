"""One number for all that an assignment depends on in the topics: their ids, partitions and racks.

Kafka stores such a hash in the group's record, computed by XXH3. Ours differs: it is never sent to a client,
and a broker that finds another number only computes the assignment once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from headrace.groups.topics_view import TopicsView


class TopicHashes:
    """Keeps the hash of each topic while the metadata stays the same: many groups read the same topics."""

    __slots__ = ("_hashes", "_topics", "_version")

    def __init__(self, topics: TopicsView) -> None:
        self._topics = topics
        self._version = -1
        self._hashes: dict[str, bytes | None] = {}

    def of(self, names: Iterable[str]) -> int:
        """Zero if none of the topics exists."""
        if self._version != self._topics.version:
            self._version = self._topics.version
            self._hashes.clear()
        parts = [part for name in sorted(names) if (part := self._of_topic(name)) is not None]
        return (
            int.from_bytes(blake2b(b"".join(parts), digest_size=8).digest(), "big", signed=True)
            if parts
            else 0
        )

    def _of_topic(self, name: str) -> bytes | None:
        if name not in self._hashes:
            self._hashes[name] = self._computed(name)
        return self._hashes[name]

    def _computed(self, name: str) -> bytes | None:
        topics = self._topics
        topic_id, count = topics.id_of(name), topics.partition_count(name)
        if topic_id is None or count is None:
            return None
        # A topic's name has no newline, and each rack stands behind its length: no two topics read alike.
        text = [f"{topic_id.hex}\n{name}\n{count}"]
        for partition in range(count):
            racks = sorted(topics.racks(name, partition))
            text.append(",".join(f"{len(rack)}:{rack}" for rack in racks))
        return blake2b("\n".join(text).encode(), digest_size=8).digest()

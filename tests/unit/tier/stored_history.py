"""A partition's history in a store, written by the machine of the tier, with indexes that can be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.core.ports_objects import Done, Found, Listing, ObjectEntry, ObjectStore
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.index_object import Indexes, encode
from headrace.tier.local import TierSettings
from tests.unit.tier.scripted import PLACE, Log, Replica, Segment

SOON = 60.0


@dataclass(slots=True)
class IndexedSegment(Segment):
    def records(self, base_offset: int) -> Iterable[bytes]:
        return [b"records of %06d " % base_offset * 10]

    def indexes(self, base_offset: int) -> Iterable[bytes]:
        return [encode(Indexes(base_offset, [(base_offset + 9, 0)], [], [], None))]


@dataclass(slots=True)
class IndexedLog(Log):
    def grow(self, count: int) -> None:
        self.count += count
        self.high_watermark = self.last_stable_offset = self.end

    @property
    def sealed(self) -> list[Segment]:
        return [IndexedSegment(base, base + 10) for base in range(self.local_start, self.end, 10)]


class IndexedReplica(Replica):
    log: IndexedLog


def upload(store: ObjectStore, segments: int, **settings: int) -> IndexedReplica:
    """The leader that did it."""
    log = IndexedLog(segments)
    leader = IndexedReplica(store, log, TierSettings(**settings))  # type: ignore[arg-type]  # any store
    leader.lead(1)
    leader.settle(4 * segments + 10)
    return leader


def listed(store: ObjectStore, prefix: str = PLACE.folder.prefix) -> list[ObjectEntry]:
    found = store.list(prefix, deadline_seconds=SOON)
    assert isinstance(found, Listing)
    return list(found.objects)


def content(store: ObjectStore, key: str) -> bytes:
    found = store.get(key, deadline_seconds=SOON)
    assert isinstance(found, Found)
    return found.data


def put(store: ObjectStore, key: str, data: bytes) -> None:
    assert isinstance(store.put(key, data, deadline_seconds=SOON), Done)


def in_memory(now_ms: int = 0) -> MemoryObjects:
    return MemoryObjects(lambda: now_ms)

"""The object store port in memory: what a store does when nothing goes wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headrace.core.ports import Buffer
from headrace.core.ports_objects import (
    ABSENT,
    Absent,
    ConditionalOutcome,
    DeleteOutcome,
    Done,
    Found,
    GetOutcome,
    Listing,
    ListOutcome,
    LostRace,
    ObjectEntry,
    Part,
    PutOutcome,
    RangeOutcome,
    Refused,
    Tag,
)


@dataclass(frozen=True, slots=True)
class _Stored:
    data: bytes
    modified_ms: int

    @property
    def tag(self) -> Tag:
        """Of the content alone, as S3 does it: an object that becomes what it once was has its old tag."""
        return Tag(hashlib.md5(self.data, usedforsecurity=False).hexdigest())


class MemoryObjects:
    """Deadlines are no matter to it: it answers at once."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._stored: dict[str, _Stored] = {}
        self.changes = 0
        """How often something was written or deleted."""

    def get(self, key: str, *, deadline_seconds: float) -> GetOutcome:
        found = self._stored.get(key)
        return ABSENT if found is None else Found(found.data, found.tag)

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        found = self._stored.get(key)
        if found is None:
            return ABSENT
        if start >= len(found.data):
            return Refused(f"{key} ends before {start}")
        return Part(found.data[start : start + length])

    def put(self, key: str, data: Buffer | Iterable[Buffer], *, deadline_seconds: float) -> PutOutcome:
        whole = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(data)
        self.changes += 1
        stored = self._stored[key] = _Stored(whole, self._now_ms())
        return Done(stored.tag)

    def put_if(
        self, key: str, data: Buffer, expected: Tag | Absent, *, deadline_seconds: float
    ) -> ConditionalOutcome:
        found = self._stored.get(key)
        if found is None if isinstance(expected, Absent) else found is not None and found.tag == expected:
            self.changes += 1
            stored = self._stored[key] = _Stored(bytes(data), self._now_ms())
            return Done(stored.tag)
        return LostRace()

    def delete(self, key: str, *, deadline_seconds: float) -> DeleteOutcome:
        self.changes += self._stored.pop(key, None) is not None
        return Done()

    def list(self, prefix: str, *, deadline_seconds: float) -> ListOutcome:
        return Listing(
            [
                ObjectEntry(key, len(each.data), each.modified_ms)
                for key, each in sorted(self._stored.items())
                if key.startswith(prefix)
            ]
        )

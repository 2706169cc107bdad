"""What groups know of topics: a small window on the metadata image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID


class TopicsView(Protocol):
    """Always the newest committed metadata: ask again instead of keeping an answer."""

    @property
    def version(self) -> int:
        """Grows with every change of the metadata, of any topic."""
        ...

    def names(self) -> Iterable[str]: ...

    def id_of(self, name: str) -> UUID | None: ...

    def name_of(self, topic_id: UUID) -> str | None: ...

    def partition_count(self, name: str) -> int | None:
        """None for a topic that does not exist."""
        ...

    def racks(self, name: str, partition: int) -> tuple[str, ...]:
        """The racks of the brokers that hold a replica; those without one are left out."""
        ...

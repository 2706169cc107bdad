"""A member of a consumer group, in one vocabulary for every client library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

#: The shortest that Apache Kafka lets a classic member have, and heartbeats that notice a rebalance soon.
SESSION_MS = 6_000
HEARTBEAT_MS = 300


class Membership(NamedTuple):
    """What a member asks for."""

    group: str
    topic: str
    instance: str | None = None
    cooperative: bool = False
    protocol: str = "classic"
    committed_only: bool = False

    @property
    def session_ms(self) -> int:
        """A static member that closes says nothing, and has this long to come back to its place."""
        return SESSION_MS if self.instance is None else 5 * SESSION_MS


class Read(NamedTuple):
    partition: int
    offset: int
    value: bytes


class Committed(NamedTuple):
    offset: int
    metadata: str


class Member(ABC):
    """Makes progress in `poll` alone, as far as its library has no threads of its own."""

    def __init__(self) -> None:
        self.revoked: list[set[int]] = []
        """What it had to give back, one entry for each time."""

    @abstractmethod
    def poll(self, seconds: float) -> list[Read]: ...

    @abstractmethod
    def assignment(self) -> set[int]: ...

    @abstractmethod
    def commit(self, offsets: Mapping[int, int], metadata: str) -> None: ...

    @abstractmethod
    def committed(self, partitions: Collection[int]) -> dict[int, Committed]:
        """Only partitions that have a commit."""

    @abstractmethod
    def seek(self, partition: int, offset: int) -> None: ...

    @abstractmethod
    def pause(self, partition: int) -> None: ...

    @abstractmethod
    def resume(self, partition: int) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """End it as an application does: a member without an instance leaves the group."""


class Kind(NamedTuple):
    """A library with one of its protocols."""

    name: str
    join: Callable[[str, Membership], Member]
    protocol: str = "classic"
    lacks: frozenset[str] = frozenset()
    """Of: cooperative, seek, metadata, fencing."""

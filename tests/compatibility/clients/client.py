"""What every client under test is asked to do, in one vocabulary.

Each client library has its own words; an adapter translates them, and translates failures into Kafka's
error codes. An adapter names the operations that its library has; tests of others are skipped for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]

#: Where a failure has no code of Kafka's: the library refused by itself.
NO_CODE = -1


class NewRecord(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None


class Consumed(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class ClientFailure(Exception):
    """An operation failed; `code` is the one that Kafka's protocol gives it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Client(ABC):
    name: ClassVar[str]
    #: Operations of this class, beyond produce and consume, that the library offers.
    operations: ClassVar[frozenset[str]] = frozenset()
    #: What the library cannot express at all: "null header", "null key", "idempotent", "timestamp" ...
    lacks: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def produce(
        self,
        topic: str,
        records: Sequence[NewRecord],
        *,
        partition: int = 0,
        compression: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send and wait; the offsets that the broker gave, where acks let it tell."""

    @abstractmethod
    def consume(
        self,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        at: str = "start",
        value: int = 0,
        timeout_ms: int = 10_000,
    ) -> list[Consumed]:
        """Up to `count` records of one assigned partition; `at` is start, end, offset or timestamp."""

    def operate(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """One administrative operation by name; see `operations`."""
        found: dict[str, Any] | None = getattr(self, operation)(**arguments)
        return found or {}

    def close(self) -> None:  # noqa: B027 - most clients hold nothing, so it is not abstract
        """Give back what the client holds."""

    # Conveniences, so that tests read like prose.

    def create_topic(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        self.operate("create", topic=topic, partitions=partitions, configs=dict(configs or {}))

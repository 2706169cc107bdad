"""What a cluster carries, as self-balancing sees it: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headrace.core.ids import TopicPartition


class PartitionLoad(NamedTuple):
    replicas: tuple[int, ...]
    """Where it is, or is on its way to; the preferred leader first."""
    size_bytes: int = 0
    rate_in: float = 0.0
    """Bytes a second that producers append."""
    rate_out: float = 0.0
    """Bytes a second that consumers fetch."""
    arriving: tuple[int, ...] = ()
    """Those of the replicas that do not have it yet."""


class BrokerRoom(NamedTuple):
    """A broker that may be given something."""

    rack: str | None = None
    total_bytes: int = 0
    """Of its log directories together; 0 if that is not known."""
    room_bytes: int | None = None
    """How much the fullest of them may still be given; None if that is not known."""


class ClusterLoad(NamedTuple):
    partitions: Mapping[TopicPartition, PartitionLoad]
    brokers: Mapping[int, BrokerRoom]
    """Others hold what they hold, and neither give nor take."""


class Settings(NamedTuple):
    """`headrace.balance.*`, see there."""

    threshold: float = 0.10
    """A share of the even load."""
    max_moves: int = 5
    max_disk_percent: float = 80.0
    min_bytes: int = 0
    min_rate: float = 0.0


class Step(NamedTuple):
    """One partition that goes elsewhere, or is led by another of its replicas."""

    partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    goal: str
    """What it makes more even."""

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(each for each in self.after if each not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(each for each in self.before if each not in self.after)

    def __str__(self) -> str:
        if self.adding:
            pairs = zip(self.removing, self.adding, strict=True)
            return f"{self.partition} " + ", ".join(f"from broker {a} to {b}" for a, b in pairs)
        return f"{self.partition} led by broker {self.after[0]} instead of {self.before[0]}"

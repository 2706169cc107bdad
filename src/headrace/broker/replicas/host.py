"""What the followers' side needs of the broker and of its partitions. Small, so that tests can stand in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.suspect_brokers import SuspectBrokers
from headrace.broker.replicas.fetch_session import Follower
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.log.partition_log import PartitionLog
from headrace.protocol.message import Message
from headrace.protocol.replica_fetch_codec import FetchedPartitionData
from headrace.replication.assignment import IsrProposal
from headrace.replication.following import FetchOutcome, FetchPosition
from headrace.replication.replica import Role

A = TypeVar("A", bound=Message)


class FollowingPartition(Follower, Protocol):
    """A partition, as its fetcher sees it."""

    @property
    def log(self) -> PartitionLog: ...
    @property
    def leader_id(self) -> int: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    @property
    def must_sync_before_ack(self) -> bool: ...
    @property
    def role(self) -> Role: ...
    def on_fetched(self, sent: FetchPosition, data: FetchedPartitionData, now_ms: int) -> FetchOutcome: ...
    def on_truncated(self, now: float, now_ms: int) -> None: ...


class LeadingPartition(Protocol):
    """A partition, as the sender of its ISR proposals sees it."""

    @property
    def topic_id(self) -> UUID: ...
    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def is_leader(self) -> bool: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    def proposed_isr(
        self, now: float, lag_seconds: float, broker_state: Callable[[int], int | None]
    ) -> IsrProposal | None: ...
    def propose(self, proposal: IsrProposal) -> bool: ...
    def proposal_failed(self, proposal: IsrProposal, *, definite: bool) -> None: ...


class Flushes(Protocol):
    def flush(
        self, log: PartitionLog, then: Callable[[HeadraceError | None], None] | None = None
    ) -> None: ...


class Truncates(Protocol):
    def begin(self, partition: FollowingPartition) -> None: ...


class Channel(Protocol):
    async def request(self, message: Message, answer: type[A], *, timeout: float = ...) -> A: ...


class ReplicaHost(NamedTuple):
    runtime: Runtime
    metadata: MetadataCache
    node: BrokerLifecycle
    channel: Channel
    partitions: PartitionTable
    flusher: Flushes
    truncations: Truncates
    suspicions: SuspectBrokers

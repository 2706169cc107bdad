"""What can be asked of the controller, and what it answers: plain values, no wire messages.

An outcome carries its error instead of raising it, because one request asks for many things and each of
them succeeds or fails alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from headrace.controller.image import ConfigResource
from headrace.core.errors import HeadraceError
from headrace.core.ids import NO_BROKER, NO_TOPIC_ID, BrokerId
from headrace.protocol.message import Message

R = TypeVar("R")

RecordGroup = list[Message]
"""Records that must be committed together: all of them or none."""


class Result(NamedTuple, Generic[R]):
    """A decision. Nothing has changed yet: the groups must be committed and replayed first."""

    groups: list[RecordGroup]
    response: R

    @property
    def records(self) -> list[Message]:
        return [record for group in self.groups for record in group]


USE_DEFAULT = -1
"""As a number of partitions or a replication factor: what the broker is configured with."""


class NewTopic(NamedTuple):
    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """(partition, broker ids), the preferred leader first; then both numbers above must be -1."""
    configs: Sequence[tuple[str, str | None]] = ()


class CreatedTopic(NamedTuple):
    name: str
    topic_id: UUID = NO_TOPIC_ID
    num_partitions: int = -1
    replication_factor: int = -1
    error: HeadraceError | None = None


class TopicDeletion(NamedTuple):
    """A topic to delete, by its name or by its id, never by both."""

    name: str | None = None
    topic_id: UUID = NO_TOPIC_ID


class DeletedTopic(NamedTuple):
    name: str | None
    topic_id: UUID
    error: HeadraceError | None = None


class MorePartitions(NamedTuple):
    name: str
    total: int
    """How many there shall be."""
    assignments: Sequence[Sequence[int]] | None = None
    """Broker ids of each added partition, or None for automatic placement."""


class PartitionsCreated(NamedTuple):
    name: str
    error: HeadraceError | None = None


class ConfigOp(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    op: int
    name: str
    value: str | None = None


class AlteredConfig(NamedTuple):
    resource: ConfigResource
    error: HeadraceError | None = None


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class ElectedLeader(NamedTuple):
    topic: str
    partition: int
    error: HeadraceError | None = None
    leader: BrokerId = NO_BROKER
    """Who was elected, if somebody was."""


class ProducerIdBlock(NamedTuple):
    first: int
    length: int


class IsrMember(NamedTuple):
    broker_id: int
    broker_epoch: int
    """Of the incarnation that fetched; -1 of a member that stays."""


class IsrChange(NamedTuple):
    """What a leader asks for, and the row that it knows."""

    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[IsrMember]
    recovering: bool = False


class AlteredPartition(NamedTuple):
    """The row as it is once the decision is committed; without a change, as it is now."""

    topic_id: UUID
    partition: int
    leader: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    recovering: bool = False
    error: HeadraceError | None = None


class Reassignment(NamedTuple):
    topic: str
    partition: int
    replicas: Sequence[int] | None
    """Where the partition shall be, the preferred leader first; None cancels what is under way."""


class ReassignedPartition(NamedTuple):
    topic: str
    partition: int
    error: HeadraceError | None = None


class OngoingReassignment(NamedTuple):
    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class AssignedReplica(NamedTuple):
    directory: UUID
    topic_id: UUID
    partition: int
    error: HeadraceError | None = None


class Balanced(NamedTuple):
    elections: int
    more: bool
    """The limit was reached: ask again."""

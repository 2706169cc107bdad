"""What groups of every type have in common: what offsets, lists and deletions need to know of one."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol
from uuid import UUID

from headrace.coordinators.decision import CoordinatorRecord

PartitionCheck = Callable[[str, UUID, int], None]
"""Refuses the commit of one partition, or does nothing: the topic's name, its id (zero if the request did not
say one), the partition."""


class GroupType(Enum):
    """The values are Kafka's names on the wire."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(Protocol):
    """A group whose state lives in one shard. Every method only looks; each `validate_` raises a refusal."""

    group_id: str

    @property
    def type(self) -> GroupType: ...

    @property
    def state_name(self) -> str:
        """As ListGroups and the describing APIs spell it."""
        ...

    @property
    def protocol_type(self) -> str:
        """ "consumer" for all groups of consumers; empty if no member has said one."""
        ...

    def is_empty(self) -> bool:
        """No members, and none on their way in."""
        ...

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, *, transactional: bool
    ) -> PartitionCheck | None:
        """`generation` is the generation of a classic member, the epoch of another.

        What it returns has to be asked for every partition: a member that lags behind its group may still
        commit what it already had at its epoch (KIP-1251). None if all may be committed.
        """
        ...

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def validate_offset_delete(self) -> None: ...

    def validate_deletion(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_expire_from(self, now_ms: int, committed_at_ms: int, topic: str) -> int | None:
        """When the retention of an offset without an expiry of its own began; None while it may not end."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """Removes everything that the log holds of the group, except its offsets."""
        ...

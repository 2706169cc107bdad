"""One member of a consumer group: what it asked for, and what it holds.

A member never changes. A decision makes another one by `changed`, and replay puts that into the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, Self
from uuid import UUID

from headrace.protocol.stored.consumer_group_member_metadata_value import ClassicMemberMetadata

Held = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic, each with the member's epoch at which it was given out (KIP-1251)."""

LEFT: Final = -1
"""The epoch of a member that says it leaves, and of one that has left."""
LEFT_FOR_A_WHILE: Final = -2
"""The epoch of a static member that is away, and whose place is kept."""

NOTHING_HELD: Final[Held] = {}


class MemberState(IntEnum):
    """The values are stored in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It was told to give up partitions, and has not confirmed it. Its epoch stands still."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others still hold."""
    UNKNOWN = 127
    """Written by a later version of the broker."""

    @classmethod
    def of(cls, stored: int) -> MemberState:
        return cls(stored) if stored in cls._value2member_map_ else cls.UNKNOWN


class ConsumerMember:
    __slots__ = (
        "assigned",
        "classic",
        "client_host",
        "client_id",
        "epoch",
        "instance_id",
        "member_id",
        "pending_revocation",
        "previous_epoch",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "state",
        "subscribed_names",
        "subscribed_regex",
    )

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    server_assignor: str | None
    subscribed_names: frozenset[str]
    subscribed_regex: str
    """Empty if it subscribes to no pattern."""
    classic: ClassicMemberMetadata | None
    """What a member that speaks the classic protocol said when it joined; None for all others."""
    epoch: int
    previous_epoch: int
    """The epoch before the last change: a member whose last answer was lost still comes with it."""
    state: MemberState
    assigned: Held
    """What it may own. Disjoint from pending_revocation, and from what any other member holds."""
    pending_revocation: Held
    """What it has to give up. Nobody else gets it before it is confirmed."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.instance_id = None
        self.rack_id = None
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout_ms = -1
        self.server_assignor = None
        self.subscribed_names = frozenset()
        self.subscribed_regex = ""
        self.classic = None
        self.epoch = 0
        self.previous_epoch = -1
        self.state = MemberState.STABLE
        self.assigned = NOTHING_HELD
        self.pending_revocation = NOTHING_HELD

    def changed(self, **fields: Any) -> Self:
        """Itself if nothing differs, so that `is` tells whether there is anything to write down."""
        if all(getattr(self, name) == value for name, value in fields.items()):
            return self
        other = type(self).__new__(type(self))
        for name in ConsumerMember.__slots__:
            setattr(other, name, getattr(self, name))
        for name, value in fields.items():
            setattr(other, name, value)
        return other

    def at_epoch(self, epoch: int, **fields: Any) -> Self:
        """Changed, and moved to an epoch. The one before is remembered, also if it is the same."""
        return self.changed(epoch=epoch, previous_epoch=self.epoch, **fields)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def held_since(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch at which it got the partition; None if it does not hold it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.pending_revocation.get(topic_id, {}).get(partition) if epoch is None else epoch

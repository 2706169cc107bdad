"""One member of a classic group. Members come by the ten thousand, so this is small."""

from __future__ import annotations

from collections.abc import Container
from sys import intern
from typing import Any

from headrace.core.completion import Completion
from headrace.protocol.messages.join_group_request import JoinGroupRequestProtocol

Protocols = tuple[tuple[str, bytes], ...]
"""What a member can do, the most wanted first: name of the protocol, and the member's metadata for it."""

NO_ASSIGNMENT = b""


def protocols_of(asked: list[JoinGroupRequestProtocol]) -> Protocols:
    return tuple((intern(each.name), each.metadata) for each in asked)


class PendingMember:
    """An id that was given out, whose owner has not joined with it yet. Also the name of its timer."""

    __slots__ = ("due_ms", "member_id")

    def __init__(self, member_id: str, due_ms: int) -> None:
        self.member_id = member_id
        self.due_ms = due_ms


class ClassicMember:
    """Compared by identity: a member is the name of its own session timer."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "due_ms",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = intern(client_id)
        self.client_host = intern(client_host)
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        """Has been in no generation yet: it cannot send heartbeats, so it has another deadline."""
        self.due_ms = 0
        """When its session ends unless it is heard of."""
        self.awaiting_join: Completion[Any] | None = None
        self.awaiting_sync: Completion[Any] | None = None

    @property
    def is_satisfied(self) -> bool:
        """Nothing is expected of a member while its request is parked, unless it is new."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def knows(self, protocol: str) -> bool:
        return any(name == protocol for name, _ in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise LookupError(f"member {self.member_id} does not know the protocol {protocol}")

    def vote(self, candidates: Container[str]) -> str:
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise LookupError(f"member {self.member_id} knows none of the protocols that all others know")

    def successor(self, member_id: str) -> ClassicMember:
        """The next process of the same static member: everything but the id, and who waits."""
        return ClassicMember(
            member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.protocols,
            self.assignment,
        )

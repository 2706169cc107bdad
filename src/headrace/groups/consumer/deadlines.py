"""The timers of members. A member that misses one is fenced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.coordinators.decision import Decision
from headrace.groups.consumer.context import Context
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import ConsumerMember, MemberState

Fence = Callable[[ConsumerGroup, list[ConsumerMember], int], Decision[Any]]
"""With the time at which the timer was due."""


class Deadlines:
    """Each member has a session. One that must give up partitions also has its rebalance timeout for it. One
    that speaks the classic protocol has the same time to join, and again to sync."""

    __slots__ = ("_context", "_fence", "_waits_for_join")

    def __init__(self, context: Context, fence: Fence) -> None:
        self._context = context
        self._fence = fence
        self._waits_for_join: dict[tuple[str, str], None] = {}

    def resume(self, group: ConsumerGroup, now_ms: int) -> None:
        """After loading: nobody had a coordinator until now."""
        for member in group.members.values():
            timeout_ms = self._context.config_of(group.group_id).group_consumer_session_timeout_ms
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
            self.session(group.group_id, member.member_id, timeout_ms, now_ms)
            self.rebalance(group.group_id, member, now_ms)

    def session(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> None:
        self._set("session", group_id, member_id, timeout_ms, now_ms)

    def rebalance(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """To be asked after every step of a member."""
        name = ("rebalance", group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            delay_ms = member.rebalance_timeout_ms
            expired = partial(self._not_revoked, group_id, member.member_id, member.epoch, now_ms + delay_ms)
            self._context.timers.set(name, delay_ms, expired)
        else:
            self._context.timers.cancel(name)

    def join(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """Not set again while it runs: a member that only sends heartbeats must not put it off."""
        if (group_id, member.member_id) not in self._waits_for_join:
            self._waits_for_join[group_id, member.member_id] = None
            self._set("join", group_id, member.member_id, member.rebalance_timeout_ms, now_ms)

    def joined(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        self._cancel("join", group_id, member.member_id)
        self._set("sync", group_id, member.member_id, member.rebalance_timeout_ms, now_ms)

    def synced(self, group_id: str, member_id: str) -> None:
        self._cancel("sync", group_id, member_id)

    def forget(self, group_id: str, member_id: str) -> None:
        for kind in ("session", "rebalance", "join", "sync"):
            self._cancel(kind, group_id, member_id)

    def _set(self, kind: str, group_id: str, member_id: str, delay_ms: int, now_ms: int) -> None:
        expired = partial(self._expired, group_id, member_id, now_ms + delay_ms)
        self._context.timers.set((kind, group_id, member_id), delay_ms, expired)

    def _cancel(self, kind: str, group_id: str, member_id: str) -> None:
        if kind == "join":
            self._waits_for_join.pop((group_id, member_id), None)
        self._context.timers.cancel((kind, group_id, member_id))

    def _expired(self, group_id: str, member_id: str, due_ms: int, _now_ms: int) -> Decision[Any]:
        group = self._context.groups.of_class(group_id, ConsumerGroup)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            self._waits_for_join.pop((group_id, member_id), None)
            return Decision((), None)
        return self._fence(group, [member], due_ms)

    def _not_revoked(
        self, group_id: str, member_id: str, epoch: int, due_ms: int, _now_ms: int
    ) -> Decision[Any]:
        group = self._context.groups.of_class(group_id, ConsumerGroup)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or member.epoch != epoch:
            return Decision((), None)
        return self._fence(group, [member], due_ms)

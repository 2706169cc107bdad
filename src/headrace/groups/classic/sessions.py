"""Who is still there: the session of every member, and the time that a new one has to join.

A timer runs out at a time that was known when it was set, so what it decides is decided as of that time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.coordinators.decision import Decision
from headrace.coordinators.shard import Timers
from headrace.groups.classic.draft import Draft
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.member import ClassicMember, PendingMember

if TYPE_CHECKING:
    from headrace.groups.classic.rebalances import Rebalances

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long the join of a new member is parked. It cannot send heartbeats, and nobody sees its connection
break; if it is still there, it joins again."""


class Sessions:
    __slots__ = ("_timers", "rebalances")

    rebalances: Rebalances
    """Set by whoever composes the two: a session that ends begins a rebalance."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers

    def extend(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
        self._set(group, member, member.session_timeout_ms, now_ms)

    def begin(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
        """Of a member that waits for its first generation."""
        self._set(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS, now_ms)

    def _set(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int, now_ms: int) -> None:
        member.due_ms = now_ms + timeout_ms
        self._timers.set(member, timeout_ms, partial(self._on_end, group, member))

    def end(self, member: ClassicMember | PendingMember) -> None:
        self._timers.cancel(member)

    def expect(self, group: ClassicGroup, member_id: str, timeout_ms: int, now_ms: int) -> None:
        """An id was given out; its owner is to join with it."""
        pending = PendingMember(member_id, now_ms + timeout_ms)
        group.pending_joins[member_id] = pending
        self._timers.set(pending, timeout_ms, partial(self._on_absence, group, pending))

    def forget(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether the id was one that somebody was expected to join with. Nobody is any more."""
        pending = group.pending_joins.pop(member_id, None)
        if pending is not None:
            self._timers.cancel(pending)
        return pending is not None

    def _on_end(self, group: ClassicGroup, member: ClassicMember, _now_ms: int) -> Decision[None]:
        draft = Draft(member.due_ms)
        if group.members.get(member.member_id) is member and not member.is_satisfied:
            self.rebalances.remove_silent(draft, group, member)
        return draft.decide(None)

    def _on_absence(self, group: ClassicGroup, pending: PendingMember, _now_ms: int) -> Decision[None]:
        draft = Draft(pending.due_ms)
        if group.pending_joins.get(pending.member_id) is pending:
            del group.pending_joins[pending.member_id]
            self.rebalances.complete_if_all_joined(draft, group)
        return draft.decide(None)

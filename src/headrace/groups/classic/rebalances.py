"""A rebalance from its beginning to the next generation: who has to join, how long others wait for them.

Besides the session timers of its members, a group has one timer for its current phase: waiting for joins,
or for syncs. The group itself is the key of that timer.
"""

from __future__ import annotations

from functools import partial

from headrace.coordinators.decision import Decision
from headrace.coordinators.shard import Timers
from headrace.groups.classic.answers import join_refused, joined, sync_refused
from headrace.groups.classic.draft import Draft
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from headrace.groups.classic.sessions import Sessions
from headrace.groups.classic.states import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from headrace.groups.classic.stored import group_record
from headrace.protocol.error_codes import ErrorCode


class Rebalances:
    __slots__ = ("_initial_delay_ms", "_sessions", "_timers")

    def __init__(self, timers: Timers, sessions: Sessions, initial_delay_ms: int) -> None:
        self._timers = timers
        self._sessions = sessions
        self._initial_delay_ms = initial_delay_ms

    # --- the phase in which members join -----------------------------------------------------------------

    def begin_or_go_on(self, draft: Draft, group: ClassicGroup) -> None:
        """Make the next generation include a change: begin a rebalance, or go on with the running one."""
        if group.state is PREPARING:
            self.complete_unless_initial(draft, group)
        else:
            self.begin(draft, group)

    def begin(self, draft: Draft, group: ClassicGroup) -> None:
        if group.state is COMPLETING:
            self._send_back(draft, group)
        group.pending_syncs.clear()
        self._timers.cancel(group)
        if group.state is EMPTY:
            # The first members of a group seldom come alone: one rebalance for all that start together.
            rest_ms = max(group.rebalance_timeout_ms - self._initial_delay_ms, 0)
            group.has_newcomers = False
            group.move_to(PREPARING, draft.now_ms)
            self._await_newcomers(group, self._initial_delay_ms, rest_ms, draft.now_ms)
            return
        group.move_to(PREPARING, draft.now_ms)
        if group.have_all_joined:
            self.complete(draft, group)
        else:
            self._await_joins(group, draft.now_ms)

    def complete_unless_initial(self, draft: Draft, group: ClassicGroup) -> None:
        if group.state is PREPARING and group.previous_state is not EMPTY and group.have_all_joined:
            self.complete(draft, group)

    def complete_if_all_joined(self, draft: Draft, group: ClassicGroup) -> None:
        """Call this when a member that was waited for is gone. As in Kafka, it ends the initial delay."""
        if group.state is PREPARING and group.have_all_joined:
            self.complete(draft, group)

    def complete(self, draft: Draft, group: ClassicGroup) -> None:
        """End the wait for joins. The next generation is the members that have joined and all static members:
        an absent static member stays until its session times out."""
        self._timers.cancel(group)
        for member in list(group.members.values()):
            if member.awaiting_join is None and member.instance_id is None:
                group.remove(member.member_id)
                self._sessions.end(member)
        if not group.elect_joined_leader() and group.members:
            # Only static members, and none of them joined. Their sessions will end, or they come.
            self._await_joins(group, draft.now_ms)
            return
        group.begin_generation(draft.now_ms)
        if group.state is EMPTY:
            draft.records.append(group_record(group, {}))
            return
        for member in group.members.values():
            if member.awaiting_join is not None:
                draft.answers.append((member.awaiting_join, joined(group, member)))
                member.awaiting_join = None
            member.is_new = False
            self._sessions.extend(group, member, draft.now_ms)
            group.pending_syncs[member.member_id] = None
        group.joined = 0
        self._await_syncs(group, draft.now_ms)

    def _await_newcomers(self, group: ClassicGroup, delay_ms: int, rest_ms: int, now_ms: int) -> None:
        due = partial(self._on_initial_delay, group, delay_ms, rest_ms, now_ms + delay_ms)
        self._timers.set(group, delay_ms, due)

    def _on_initial_delay(
        self, group: ClassicGroup, delay_ms: int, rest_ms: int, due_ms: int, _now_ms: int
    ) -> Decision[None]:
        """A member that joins within the delay extends it, up to the group's rebalance timeout."""
        draft = Draft(due_ms)
        if group.state is PREPARING:
            if group.has_newcomers and rest_ms != 0:
                group.has_newcomers = False
                next_delay_ms = min(self._initial_delay_ms, rest_ms)
                self._await_newcomers(group, next_delay_ms, max(rest_ms - delay_ms, 0), due_ms)
            else:
                self.complete(draft, group)
        return draft.decide(None)

    def _await_joins(self, group: ClassicGroup, now_ms: int) -> None:
        timeout_ms = group.rebalance_timeout_ms
        self._timers.set(group, timeout_ms, partial(self._on_join_timeout, group, now_ms + timeout_ms))

    def _on_join_timeout(self, group: ClassicGroup, due_ms: int, _now_ms: int) -> Decision[None]:
        draft = Draft(due_ms)
        if group.state is PREPARING:
            self.complete(draft, group)
        return draft.decide(None)

    # --- the phase in which members sync -----------------------------------------------------------------

    def _await_syncs(self, group: ClassicGroup, now_ms: int) -> None:
        timeout_ms = group.rebalance_timeout_ms
        due = partial(self._on_sync_timeout, group, group.generation, now_ms + timeout_ms)
        self._timers.set(group, timeout_ms, due)

    def _on_sync_timeout(
        self, group: ClassicGroup, generation: int, due_ms: int, _now_ms: int
    ) -> Decision[None]:
        """Remove the members that joined and never sent SyncGroup, because they hold partitions that nobody
        reads. Then begin another rebalance."""
        draft = Draft(due_ms)
        awaited = group.state is COMPLETING or group.state is STABLE
        if awaited and generation == group.generation and group.pending_syncs:
            for member_id in list(group.pending_syncs):
                self._sessions.end(group.members[member_id])
                group.remove(member_id)
            self.begin(draft, group)
        return draft.decide(None)

    def note_sync(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_syncs.pop(member_id, None)
        if not group.pending_syncs:
            self._timers.cancel(group)

    def _send_back(self, draft: Draft, group: ClassicGroup) -> None:
        """No assignment of this generation will come: whoever waits for one joins again."""
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
            if member.awaiting_sync is not None:
                draft.answers.append((member.awaiting_sync, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS)))
                member.awaiting_sync = None
                self._sessions.extend(group, member, draft.now_ms)

    # --- members that go ---------------------------------------------------------------------------------

    def dismiss(self, draft: Draft, group: ClassicGroup, member: ClassicMember) -> None:
        """Take a member out, and answer what it waits for. The caller goes on with the rebalance."""
        self._sessions.end(member)
        if member.awaiting_join is not None:
            draft.answers.append((member.awaiting_join, join_refused(ErrorCode.UNKNOWN_MEMBER_ID)))
        if member.awaiting_sync is not None:
            draft.answers.append((member.awaiting_sync, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID)))
        group.remove(member.member_id)

    def remove_silent(self, draft: Draft, group: ClassicGroup, member: ClassicMember) -> None:
        """Its session is over."""
        self.dismiss(draft, group, member)
        if group.state is PREPARING:
            self.complete_if_all_joined(draft, group)
        else:
            self.begin(draft, group)

    def end(self, group: ClassicGroup) -> None:
        """The group is gone from the log: nothing of it may fire any more."""
        self._timers.cancel(group)
        for member in group.members.values():
            self._sessions.end(member)
        for pending in group.pending_joins.values():
            self._sessions.end(pending)
        group.members.clear()
        group.pending_joins.clear()
        group.state = DEAD

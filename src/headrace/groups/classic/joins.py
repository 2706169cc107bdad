"""JoinGroup: who may become a member, and when a join begins a rebalance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from headrace.coordinators.decision import PARKED, Parked
from headrace.core.completion import Completion
from headrace.core.errors import FencedInstance, UnknownMember
from headrace.core.ports import Random
from headrace.groups.classic.answers import join_refused, joined, sync_refused
from headrace.groups.classic.draft import Draft
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.member import ClassicMember, Protocols, protocols_of
from headrace.groups.classic.rebalances import Rebalances
from headrace.groups.classic.sessions import Sessions
from headrace.groups.classic.states import COMPLETING, EMPTY, PREPARING, STABLE
from headrace.groups.classic.stored import group_record
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.join_group_request import JoinGroupRequest
from headrace.protocol.messages.join_group_response import JoinGroupResponse

MEMBER_ID_REQUIRED_FROM = 4
SKIPPED_ASSIGNMENT_FROM = 9

Answer = JoinGroupResponse | Parked


class Client(NamedTuple):
    """Who asks, and in which version."""

    version: int
    client_id: str
    host: str
    """As Kafka stores it: with a slash in front of the address."""
    sees: Callable[[str], bool] | None = None
    """Whether the client may know of a topic; None: of every one."""


class Join(NamedTuple):
    """One request, on its way through."""

    request: JoinGroupRequest
    protocols: Protocols
    client: Client
    completion: Completion[Any]


class Joins:
    __slots__ = ("_max_size", "_random", "_rebalances", "_sessions")

    def __init__(self, rebalances: Rebalances, sessions: Sessions, random: Random, max_size: int) -> None:
        self._rebalances = rebalances
        self._sessions = sessions
        self._random = random
        self._max_size = max_size

    def join(
        self,
        draft: Draft,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        completion: Completion[Any],
    ) -> Answer:
        join = Join(request, protocols_of(request.protocols), client, completion)
        if not self._has_room(group, request.member_id):
            self._turn_away(draft, group, request.member_id)
            return join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(request.protocol_type, join.protocols):
            return join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        if request.member_id:
            return self._join_known(draft, group, join)
        return self._join_unknown(draft, group, join)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        if group.state is EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is PREPARING:
            # Those who have joined count, not those who are there: after the limit was lowered, the last
            # ones to join again are the ones that go.
            return (member is not None and member.awaiting_join is not None) or group.joined < self._max_size
        return member is not None or len(group.members) < self._max_size

    def _turn_away(self, draft: Draft, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self._rebalances.dismiss(draft, group, member)
        else:
            self._sessions.forget(group, member_id)
        # It may have been the last one that the others waited for.
        self._rebalances.complete_unless_initial(draft, group)

    # --- without a member id -----------------------------------------------------------------------------

    def _join_unknown(self, draft: Draft, group: ClassicGroup, join: Join) -> Answer:
        instance_id = join.request.group_instance_id
        if instance_id is not None:
            member_id = self._new_id(instance_id)
            existing = group.static_members.get(instance_id)
            if existing is not None:
                return self._replace(draft, group, group.members[existing], member_id, join)
            return self._add(draft, group, member_id, join)
        member_id = self._new_id(join.client.client_id)
        if join.client.version >= MEMBER_ID_REQUIRED_FROM:
            self._sessions.expect(group, member_id, join.request.session_timeout_ms, draft.now_ms)
            return join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self._add(draft, group, member_id, join)

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}-{UUID(bytes=self._random.randbytes(16), version=4)}"

    def _add(self, draft: Draft, group: ClassicGroup, member_id: str, join: Join) -> Answer:
        request = join.request
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            join.client.client_id,
            join.client.host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            join.protocols,
        )
        member.is_new = True
        member.awaiting_join = join.completion
        if group.state is PREPARING and group.previous_state is EMPTY:
            group.has_newcomers = True
        self._sessions.forget(group, member_id)
        group.add(member, request.protocol_type)
        self._sessions.begin(group, member, draft.now_ms)
        self._rebalances.begin_or_go_on(draft, group)
        return PARKED

    # --- static members whose process started again ------------------------------------------------------

    def _replace(
        self, draft: Draft, group: ClassicGroup, old: ClassicMember, member_id: str, join: Join
    ) -> Answer:
        old_leader = group.leader or ""
        self._fence(draft, group, old)
        member = old.successor(member_id)
        group.replace_static(old, member)
        self._sessions.end(old)
        self._sessions.extend(group, member, draft.now_ms)
        self._update(group, member, join)
        if group.state is STABLE and group.select_protocol() == group.protocol_name:
            # The assignment holds: the new process gets what its predecessor had, and nobody is disturbed.
            assignments = {each.member_id: each.assignment for each in group.members.values()}
            draft.records.append(group_record(group, assignments))
            if join.client.version >= SKIPPED_ASSIGNMENT_FROM:
                return joined(group, member, skip_assignment=group.leader == member_id)
            # Told of its predecessor as the leader, it will not assign, as nobody waits for that.
            response = joined(group, member)
            response.leader, response.members = old_leader, []
            return response
        self._park(group, member, join.completion)
        # In the middle of a rebalance the leader may know the old id already, and assign to that.
        self._rebalances.begin_or_go_on(draft, group)
        return PARKED

    def _fence(self, draft: Draft, group: ClassicGroup, old: ClassicMember) -> None:
        code = ErrorCode.FENCED_INSTANCE_ID
        if old.awaiting_join is not None:
            draft.answers.append((old.awaiting_join, join_refused(code, old.member_id)))
            old.awaiting_join = None
            group.joined -= 1
        if old.awaiting_sync is not None:
            draft.answers.append((old.awaiting_sync, sync_refused(code)))
            old.awaiting_sync = None

    # --- with a member id --------------------------------------------------------------------------------

    def _join_known(self, draft: Draft, group: ClassicGroup, join: Join) -> Answer:
        request = join.request
        member_id = request.member_id
        if member_id in group.pending_joins:
            if request.group_instance_id is not None:
                # Ids are given out to dynamic members only.
                return join_refused(ErrorCode.UNKNOWN_SERVER_ERROR, member_id)
            return self._add(draft, group, member_id, join)
        try:
            member = group.validate_member(member_id, request.group_instance_id)
        except UnknownMember:
            return join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
        except FencedInstance:
            return join_refused(ErrorCode.FENCED_INSTANCE_ID, member_id)
        same = member.protocols == join.protocols
        # Whose join is repeated, because the answer to it was lost, is told the same again. The leader of a
        # stable group may know something that its metadata does not show: partitions were added, say.
        if same and (group.state is COMPLETING or (group.state is STABLE and group.leader != member_id)):
            return joined(group, member)
        self._update(group, member, join)
        self._answer_earlier(draft, group, member)
        self._park(group, member, join.completion)
        self._rebalances.begin_or_go_on(draft, group)
        return PARKED

    def _update(self, group: ClassicGroup, member: ClassicMember, join: Join) -> None:
        group.change_protocols(member, join.protocols)
        member.rebalance_timeout_ms = join.request.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms

    def _answer_earlier(self, draft: Draft, group: ClassicGroup, member: ClassicMember) -> None:
        """The same member joined before, and gave that up: its connection broke, most likely."""
        if member.awaiting_join is not None:
            code = ErrorCode.REBALANCE_IN_PROGRESS
            draft.answers.append((member.awaiting_join, join_refused(code, member.member_id)))
            member.awaiting_join = None
            group.joined -= 1

    def _park(self, group: ClassicGroup, member: ClassicMember, completion: Completion[Any]) -> None:
        member.awaiting_join = completion
        group.joined += 1

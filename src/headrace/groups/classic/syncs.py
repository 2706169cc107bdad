"""SyncGroup and Heartbeat: members of a generation ask for their assignment, and say that they live."""

from __future__ import annotations

from typing import Any

from headrace.coordinators.decision import PARKED, Decision, Parked
from headrace.core.completion import Completion
from headrace.core.errors import FencedInstance, UnknownMember
from headrace.groups.classic.answers import sync_refused, synced
from headrace.groups.classic.draft import Draft
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from headrace.groups.classic.rebalances import Rebalances
from headrace.groups.classic.sessions import Sessions
from headrace.groups.classic.states import COMPLETING, PREPARING
from headrace.groups.classic.stored import group_record
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.protocol.messages.sync_group_response import SyncGroupResponse


class Syncs:
    __slots__ = ("_rebalances", "_sessions")

    def __init__(self, rebalances: Rebalances, sessions: Sessions) -> None:
        self._rebalances = rebalances
        self._sessions = sessions

    def sync(
        self, draft: Draft, group: ClassicGroup, request: SyncGroupRequest, completion: Completion[Any]
    ) -> SyncGroupResponse | Parked:
        refusal = _refusal(group, request.member_id, request.group_instance_id, request.generation_id)
        if refusal is not None:
            return sync_refused(refusal)
        if _differ(request.protocol_type, group.stated_protocol_type) or _differ(
            request.protocol_name, group.protocol_name
        ):
            return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is PREPARING:
            return sync_refused(ErrorCode.REBALANCE_IN_PROGRESS)
        member = group.members[request.member_id]
        if group.state is not COMPLETING:
            self._rebalances.note_sync(group, member.member_id)
            return synced(group, member.assignment)
        if group.leader == member.member_id:
            return self._assign(draft, group, member, request)
        self._rebalances.note_sync(group, member.member_id)
        if member.awaiting_sync is not None:
            # The same member asked before, and gave that up.
            draft.answers.append((member.awaiting_sync, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS)))
        member.awaiting_sync = completion
        return PARKED

    def _assign(
        self, draft: Draft, group: ClassicGroup, leader: ClassicMember, request: SyncGroupRequest
    ) -> SyncGroupResponse:
        """The group becomes stable when the record is replayed. Should it not be written, because it is too
        large, then this generation has no assignment, and its time to sync runs out."""
        assignments = {each.member_id: each.assignment for each in request.assignments}
        draft.records.append(group_record(group, assignments))
        for member in group.members.values():
            if member.awaiting_sync is not None:
                assignment = assignments.get(member.member_id, NO_ASSIGNMENT)
                draft.answers.append((member.awaiting_sync, synced(group, assignment)))
                self._sessions.extend(group, member, draft.now_ms)
        self._sessions.extend(group, leader, draft.now_ms)
        return synced(group, assignments.get(leader.member_id, NO_ASSIGNMENT))

    def heartbeat(
        self, group: ClassicGroup, request: HeartbeatRequest, now_ms: int
    ) -> Decision[HeartbeatResponse]:
        code = _refusal(group, request.member_id, request.group_instance_id, request.generation_id)
        if code is None:
            self._sessions.extend(group, group.members[request.member_id], now_ms)
            code = ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING else ErrorCode.NONE
        return Decision((), HeartbeatResponse(error_code=code), reveals=False)


def _refusal(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode | None:
    try:
        group.validate_member(member_id, instance_id)
    except UnknownMember:
        return ErrorCode.UNKNOWN_MEMBER_ID
    except FencedInstance:
        return ErrorCode.FENCED_INSTANCE_ID
    return None if generation == group.generation else ErrorCode.ILLEGAL_GENERATION


def _differ(said: str | None, known: str | None) -> bool:
    """Older clients say nothing, and then nothing is wrong."""
    return said is not None and known is not None and said != known

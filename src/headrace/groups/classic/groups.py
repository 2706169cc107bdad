"""The classic groups of one shard: what is asked of them, and how records change them.

Membership before an assignment is not written down, so joins change it in place. What is written is the
generation with its assignment. That is applied here when it is replayed, by who decided it and by who loads
it alike.
"""

from __future__ import annotations

from typing import Any

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.core.completion import Completion
from headrace.core.ports import Random
from headrace.groups.classic.answers import join_refused, sync_refused
from headrace.groups.classic.draft import Draft
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.joins import Client, Joins
from headrace.groups.classic.leaves import Leaves, leave_response
from headrace.groups.classic.rebalances import Rebalances
from headrace.groups.classic.sessions import Sessions
from headrace.groups.classic.states import COMPLETING, EMPTY, STABLE
from headrace.groups.classic.stored import load_group, new_group_record
from headrace.groups.classic.syncs import Syncs
from headrace.groups.group import Group
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.protocol.messages.sync_group_response import SyncGroupResponse
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey
from headrace.protocol.stored.group_metadata_value import GroupMetadataValue


class ClassicGroups:
    __slots__ = (
        "_groups",
        "_is_loaded",
        "_joins",
        "_leaves",
        "_max_size",
        "_syncs",
        "rebalances",
        "sessions",
    )

    def __init__(self, groups: GroupTable, timers: Timers, config: GroupConfig, random: Random) -> None:
        self._groups = groups
        self._max_size = config.group_max_size
        self._is_loaded = False
        self.sessions = Sessions(timers)
        self.rebalances = Rebalances(timers, self.sessions, config.group_initial_rebalance_delay_ms)
        self.sessions.rebalances = self.rebalances
        self._joins = Joins(self.rebalances, self.sessions, random, config.group_max_size)
        self._syncs = Syncs(self.rebalances, self.sessions)
        self._leaves = Leaves(self.rebalances, self.sessions)

    # --- operations --------------------------------------------------------------------------------------

    def join(
        self, request: JoinGroupRequest, client: Client, completion: Completion[Any], now_ms: int
    ) -> Decision[JoinGroupResponse]:
        """A group is made by the first join without a member id."""
        draft = Draft(now_ms)
        existing = self._groups.get(request.group_id)
        if isinstance(existing, ClassicGroup):
            return draft.decide(self._joins.join(draft, existing, request, client, completion))
        if request.member_id:
            return Decision((), join_refused(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        if existing is not None:
            assert existing.is_empty(), "only an empty group of another type gives way"
            draft.records += existing.tombstones()
        group = ClassicGroup(request.group_id, now_ms)
        self._groups.put(group)
        answer = self._joins.join(draft, group, request, client, completion)
        draft.records.append(new_group_record(group.group_id, now_ms))
        return draft.decide(answer)

    def sync(
        self, request: SyncGroupRequest, completion: Completion[Any], now_ms: int
    ) -> Decision[SyncGroupResponse]:
        group = self._groups.of_class(request.group_id, ClassicGroup)
        if group is None:
            return Decision((), sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        draft = Draft(now_ms)
        return draft.decide(self._syncs.sync(draft, group, request, completion))

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Decision[HeartbeatResponse]:
        group = self._groups.of_class(request.group_id, ClassicGroup)
        if group is None:
            return Decision((), HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), reveals=False)
        return self._syncs.heartbeat(group, request, now_ms)

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Decision[LeaveGroupResponse]:
        group = self._groups.of_class(request.group_id, ClassicGroup)
        if group is None:
            codes = [ErrorCode.UNKNOWN_MEMBER_ID] * len(request.members)
            return Decision((), leave_response(request, codes))
        draft = Draft(now_ms)
        return draft.decide(self._leaves.leave(draft, group, request))

    # --- for offsets, and for groups of the other protocol -----------------------------------------------

    def create_simple_group(self, group_id: str) -> ClassicGroup:
        """A group that only has offsets. No record stands for it."""
        group = ClassicGroup(group_id)
        self._groups.put(group)
        return group

    def retire(self, group: ClassicGroup) -> None:
        """It is deleted, or of the other protocol from now on. Who waits for it was answered by whoever
        decided that."""
        self.rebalances.end(group)
        self._groups.remove_of_class(group.group_id, ClassicGroup)

    def on_offset_commit(self, group: Group, member_id: str, now_ms: int) -> None:
        """Who commits, lives. During a rebalance, though, who does not sync is not spared by it."""
        if isinstance(group, ClassicGroup) and group.state is not COMPLETING:
            member = group.members.get(member_id)
            if member is not None:
                self.sessions.extend(group, member, now_ms)

    # --- replay ------------------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord) -> None:
        key, value, _ = record
        assert isinstance(key, GroupMetadataKey)
        group = self._groups.of_class(key.group, ClassicGroup)
        if value is None:
            if group is not None:
                self.retire(group)
            return
        assert isinstance(value, GroupMetadataValue)
        if group is None or not self._is_loaded:
            # What stands in the log of another type of this id was ended by its own tombstones.
            self._groups.put(load_group(key.group, value))
        elif value.members:
            self._apply(group, value)
        # Without members it says what the group was told when that was decided: it is new, or empty again.

    def _apply(self, group: ClassicGroup, value: GroupMetadataValue) -> None:
        """An assignment of this coordinator is written: the group is stable, and nobody waits any more."""
        for each in value.members:
            member = group.members.get(each.member_id)
            if member is not None:
                member.assignment = each.assignment
                member.awaiting_sync = None
        if group.state is COMPLETING and group.leader is not None:
            group.previous_state, group.state = COMPLETING, STABLE
            self.rebalances.note_sync(group, group.leader)
        group.forget_topics()

    def on_loaded(self, now_ms: int) -> Decision[None]:
        """Members have a whole session from now on: they could not reach anybody before."""
        self._is_loaded = True
        draft = Draft(now_ms)
        for group in self._groups:
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                self.sessions.extend(group, member, now_ms)
            if len(group.members) > self._max_size and group.state is not EMPTY:
                # The limit was lowered. A rebalance first lets members commit what they have done.
                self.rebalances.begin(draft, group)
        return draft.decide(None)

"""The groups of the server-side protocol (KIP-848) in one shard."""

from __future__ import annotations

from headrace.coordinators.decision import CoordinatorRecord, Decision, Ticket
from headrace.coordinators.shard import Timers
from headrace.core.ports import Random
from headrace.groups.classic.answers import join_refused, sync_refused
from headrace.groups.classic.joins import Client
from headrace.groups.classic.leaves import leave_response
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.groups.topics_view import TopicsView
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.protocol.messages.sync_group_response import SyncGroupResponse


class ConsumerGroups:
    def __init__(
        self, groups: GroupTable, timers: Timers, topics: TopicsView, config: GroupConfig, random: Random
    ) -> None:
        self._groups = groups
        self._timers = timers
        self._topics = topics
        self._config = config
        self._random = random

    def join_classic(
        self,
        request: JoinGroupRequest,
        client: Client,  # noqa: ARG002 - members of the classic protocol are not taken yet
        ticket: Ticket,  # noqa: ARG002 - see above
        now_ms: int,  # noqa: ARG002 - see above
    ) -> Decision[JoinGroupResponse]:
        """JoinGroup of a member of the classic protocol, in a consumer group that has members."""
        return Decision((), join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))

    def sync_classic(
        self,
        request: SyncGroupRequest,  # noqa: ARG002 - see above
        ticket: Ticket,  # noqa: ARG002 - see above
        now_ms: int,  # noqa: ARG002 - see above
    ) -> Decision[SyncGroupResponse]:
        return Decision((), sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat_classic(
        self,
        request: HeartbeatRequest,  # noqa: ARG002 - see above
        now_ms: int,  # noqa: ARG002 - see above
    ) -> Decision[HeartbeatResponse]:
        return Decision((), HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), reveals=False)

    def leave_classic(
        self,
        request: LeaveGroupRequest,
        now_ms: int,  # noqa: ARG002 - see above
    ) -> Decision[LeaveGroupResponse]:
        codes = [ErrorCode.UNKNOWN_MEMBER_ID] * len(request.members)
        return Decision((), leave_response(request, codes))

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:
        """Change the state by a record whose key is a ConsumerGroup*Key."""

    def on_loaded(self, now_ms: int) -> Decision[None]:  # noqa: ARG002 - no timers yet
        return Decision((), None)

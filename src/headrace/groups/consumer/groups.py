"""The groups of the server-side protocol (KIP-848) in one shard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.core.completion import Completion
from headrace.core.ports import Random
from headrace.groups.classic.groups import ClassicGroups
from headrace.groups.classic.joins import Client
from headrace.groups.consumer.classic_members import ClassicMembers
from headrace.groups.consumer.context import Context
from headrace.groups.consumer.describing import describe
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.heartbeats import Heartbeats
from headrace.groups.consumer.leaving import Leaving, require_consumer_group
from headrace.groups.consumer.replaying import replay
from headrace.groups.consumer.topic_lookups import TopicLookups
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.protocol.messages.consumer_group_describe_response import DescribedGroup
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.protocol.messages.sync_group_response import SyncGroupResponse


class ConsumerGroups:
    __slots__ = ("_classic_members", "_context", "_heartbeats", "_leaving")

    def __init__(
        self,
        groups: GroupTable,
        classic: ClassicGroups,
        timers: Timers,
        lookups: TopicLookups,
        config: GroupConfig,
        random: Random,
        own: Mapping[str, GroupConfig],
    ) -> None:
        self._context = Context(groups, timers, lookups, config, random, own)
        self._leaving = Leaving(self._context, classic)
        self._heartbeats = Heartbeats(self._context, self._leaving)
        self._classic_members = ClassicMembers(self._context, self._leaving)

    def configure(self, config: GroupConfig) -> None:
        self._context.config = config

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        return self._heartbeats.heartbeat(request, client, now_ms)

    # Requests of the classic protocol to a consumer group that has members

    def join_classic(
        self,
        request: JoinGroupRequest,
        client: Client,
        completion: Completion[Any],  # noqa: ARG002 - never parked: nobody has to be waited for
        now_ms: int,
    ) -> Decision[JoinGroupResponse]:
        return self._classic_members.join(request, client, now_ms)

    def sync_classic(
        self,
        request: SyncGroupRequest,
        completion: Completion[Any],  # noqa: ARG002 - never parked: the assignment is there before the member asks
        now_ms: int,
    ) -> Decision[SyncGroupResponse]:
        return self._classic_members.sync(request, now_ms)

    def heartbeat_classic(self, request: HeartbeatRequest, now_ms: int) -> Decision[HeartbeatResponse]:
        return self._classic_members.heartbeat(request, now_ms)

    def leave_classic(self, request: LeaveGroupRequest, now_ms: int) -> Decision[LeaveGroupResponse]:
        return self._classic_members.leave(request, now_ms)

    def describe(self, group_id: str) -> Decision[DescribedGroup]:
        group = require_consumer_group(self._context, group_id)
        return Decision((), describe(group, self._context.default_assignor, self._context.topics))

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:  # noqa: ARG002 - the place of a record does not matter here
        """Change the state by a record whose key is a ConsumerGroup*Key."""
        replay(self._context.groups, record, timestamp_ms)

    def on_loaded(self, now_ms: int) -> Decision[None]:
        """Members have a whole session from now on: they could not reach anybody before."""
        for group in self._context.groups:
            if isinstance(group, ConsumerGroup):
                self._leaving.deadlines.resume(group, now_ms)
        return Decision((), None)

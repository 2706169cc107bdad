"""All groups whose ids fall into one partition of __consumer_offsets, with their offsets.

Three parts share one table of groups. Which of them replays a record is decided by the class of its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError
from headrace.core.memory import MemoryShare
from headrace.core.ports import Random
from headrace.groups.classic.descriptions import describe
from headrace.groups.classic.groups import ClassicGroups
from headrace.groups.classic.joins import Client
from headrace.groups.consumer.groups import ConsumerGroups
from headrace.groups.consumer.topic_lookups import TopicLookups
from headrace.groups.group import GroupType
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.groups.listing import list_groups
from headrace.groups.offsets.offsets import GroupOffsets
from headrace.groups.offsets.room import OffsetRoom
from headrace.groups.sizes import size_of
from headrace.groups.topics_view import TopicsView
from headrace.protocol.messages.describe_groups_response import DescribedGroup
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.list_groups_response import ListedGroup
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.protocol.messages.sync_group_response import SyncGroupResponse
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey


class GroupShard:
    """Implements coordinators.shard.Shard."""

    __slots__ = ("_memory", "classic", "consumer", "groups", "offsets")

    def __init__(
        self,
        timers: Timers,
        topics: TopicsView,
        config: GroupConfig,
        random: Random,
        lookups: TopicLookups | None = None,
        memory: MemoryShare | None = None,
        room: OffsetRoom | None = None,
        own: Mapping[str, GroupConfig] | None = None,
    ) -> None:
        """`lookups` of the same topics, if several shards share one. `memory` is told what was loaded, `room`
        is asked for offsets. `own`: the settings of groups that have some of their own, by id, as they are at
        any time."""
        self._memory = memory
        self.groups = GroupTable()
        self.classic = ClassicGroups(self.groups, timers, config, random)
        self.offsets = GroupOffsets(self.groups, self.classic, timers, topics, config, room)
        self.consumer = ConsumerGroups(
            self.groups,
            self.classic,
            timers,
            lookups or TopicLookups(topics),
            config,
            random,
            {} if own is None else own,
        )

    def configure(self, config: GroupConfig) -> None:
        """The settings that may change while a broker runs are all of consumer groups."""
        self.consumer.configure(config)

    # --- operations on groups of either protocol ---------------------------------------------------------

    def join(
        self, request: JoinGroupRequest, client: Client, completion: Completion[Any], now_ms: int
    ) -> Decision[JoinGroupResponse]:
        """A consumer group takes members of the classic protocol; an empty one becomes a classic group."""
        if self._is_for_consumer(request.group_id):
            return self.consumer.join_classic(request, client, completion, now_ms)
        return self.classic.join(request, client, completion, now_ms)

    def sync(
        self, request: SyncGroupRequest, completion: Completion[Any], now_ms: int
    ) -> Decision[SyncGroupResponse]:
        if self._is_for_consumer(request.group_id):
            return self.consumer.sync_classic(request, completion, now_ms)
        return self.classic.sync(request, completion, now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Decision[HeartbeatResponse]:
        if self._is_for_consumer(request.group_id):
            return self.consumer.heartbeat_classic(request, now_ms)
        return self.classic.heartbeat(request, now_ms)

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Decision[LeaveGroupResponse]:
        if self._is_for_consumer(request.group_id):
            return self.consumer.leave_classic(request, now_ms)
        return self.classic.leave(request, now_ms)

    def _is_for_consumer(self, group_id: str) -> bool:
        group = self.groups.get(group_id)
        return group is not None and group.type is GroupType.CONSUMER and not group.is_empty()

    def describe_groups(self, group_ids: Sequence[str], version: int) -> Decision[list[DescribedGroup]]:
        return Decision((), [describe(self.groups, group_id, version) for group_id in group_ids])

    def list_groups(self, states: Set[str], types: Set[str]) -> Decision[list[ListedGroup]]:
        return Decision((), list_groups(self.groups, states, types))

    def delete_groups(self, group_ids: Sequence[str]) -> Decision[dict[str, HeadraceError | None]]:
        """Each on its own: the empty ones go, with their offsets, and the others are refused."""
        records: list[CoordinatorRecord] = []
        outcomes: dict[str, HeadraceError | None] = {}
        for group_id in group_ids:
            if group_id in outcomes:
                continue
            try:
                group = self.groups.require(group_id)
                group.validate_deletion()
            except HeadraceError as error:
                outcomes[group_id] = error
                continue
            records += self.offsets.tombstones(group_id)
            records += group.tombstones()
            outcomes[group_id] = None
        return Decision(records, outcomes)

    # --- the log -----------------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:
        kind = record.key.API_KEY
        if kind <= OffsetCommitKey.API_KEY:
            self.offsets.replay(record, offset, timestamp_ms)
        elif kind == GroupMetadataKey.API_KEY:
            self.classic.replay(record)
        else:
            self.consumer.replay(record, offset, timestamp_ms)

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, timestamp_ms: int, producer_id: int
    ) -> None:
        """Only offsets are written by transactions."""
        self.offsets.replay_transactional(record, offset, timestamp_ms, producer_id)

    def replay_end(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        self.offsets.replay_end(producer_id, producer_epoch, committed=committed)

    def on_loaded(self, now_ms: int) -> Decision[None]:
        """No answer of anybody is parked yet, so the parts' decisions are one."""
        if self._memory is not None:
            self._memory.take(size_of(self.groups))
        records: list[CoordinatorRecord] = []
        for part in (self.classic, self.consumer, self.offsets):
            records.extend(part.on_loaded(now_ms).records)
        return Decision(records, None)

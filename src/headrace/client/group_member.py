"""A member of a classic group: joins, is given partitions, says that it lives, commits, and leaves.

It assigns by range, as every client can, so that it gets along with members of other clients. It gives up all
partitions at each rebalance and starts again from what is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.connection import Answer, Connection
from headrace.client.coordinators import CoordinatorKind, find_coordinators
from headrace.client.errors import ApiMissing
from headrace.client.groups import CONSUMER_PROTOCOL, classic_assignment
from headrace.client.offsets import partitions_of
from headrace.client.refusals import refusal
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from headrace.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.protocol.messages.sync_group_response import SyncGroupResponse
from headrace.protocol.primitives import Reader, Writer

RANGE: Final = "range"
_COMMIT_AT_MOST: Final = 9  # from 10 on a commit names topics by id
_FIRST_NAMED_LEAVE: Final = 3
_GRACE_SECONDS: Final = 10.0
_SUBSCRIPTION_VERSION: Final = 1
_ASSIGNMENT_VERSION: Final = 1
REJOIN: Final = frozenset(
    (
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    )
)
"""Codes after which a member joins again. The group goes on without it until then."""


class GroupMember:
    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: Sequence[str],
        *,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        self.cluster = cluster
        self.group_id = group_id
        self.topics = list(topics)
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = ""
        self.generation = -1

    async def join(self) -> list[TopicPartition]:
        """What this member is to read. Comes back when all members have joined, which can take a while."""
        while True:
            joined = await self.cluster.retried(self._join)
            self.member_id = joined.member_id
            if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            if joined.error_code in REJOIN:
                continue
            self.generation = joined.generation_id
            assignments: list[SyncGroupRequestAssignment] = []
            if joined.leader == joined.member_id:
                assignments = await self._assign(joined)
            synced = await self.cluster.retried(partial(self._sync, assignments))
            if synced.error_code in REJOIN:
                continue
            return classic_assignment(synced.assignment)

    async def heartbeat(self) -> bool:
        """Whether all is as it was. If not, join again."""
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )

        async def attempt() -> int:
            reply = await self._ask(request, HeartbeatResponse)
            return self._checked(reply.error_code)

        return await self.cluster.retried(attempt) == 0

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether it counts. If not, the partitions are another member's by now."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (name, index), offset in offsets.items():
            topics.setdefault(name, []).append(
                OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=name, partitions=items) for name, items in topics.items()],
        )

        async def attempt() -> bool:
            reply = await self._ask(request, OffsetCommitResponse, at_most=_COMMIT_AT_MOST)
            codes = [entry.error_code for topic in reply.topics for entry in topic.partitions]
            return all(not self._checked(code) for code in codes)

        return not offsets or await self.cluster.retried(attempt)

    async def leave(self) -> None:
        """Give the partitions to the others at once, instead of when the session times out."""
        if not self.member_id:
            return
        connection = await self._coordinator()
        request = LeaveGroupRequest(group_id=self.group_id)
        if connection.version_for(LeaveGroupRequest) >= _FIRST_NAMED_LEAVE:
            request.members = [MemberIdentity(member_id=self.member_id)]
        else:
            request.member_id = self.member_id
        await connection.request(request, LeaveGroupResponse, timeout=self.cluster.request_timeout)
        self.member_id = ""

    async def _join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=[
                JoinGroupRequestProtocol(
                    name=RANGE,
                    metadata=_with_version(
                        _SUBSCRIPTION_VERSION, ConsumerProtocolSubscription(topics=self.topics)
                    ),
                )
            ],
        )
        reply = await self._ask(request, JoinGroupResponse)
        self._checked(reply.error_code)
        return reply

    async def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=assignments,
        )
        connection = await self._coordinator()
        if connection.version_for(SyncGroupRequest) >= 5:
            request.protocol_type, request.protocol_name = CONSUMER_PROTOCOL, RANGE
        reply = await self._ask(request, SyncGroupResponse)
        self._checked(reply.error_code)
        return reply

    def _checked(self, code: int) -> int:
        """The code, if it is none or one after which to join again."""
        if code and code not in REJOIN:
            raise refusal(code, f"group {self.group_id}")
        return code

    async def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        wishes = {member.member_id: _subscribed(member.metadata) for member in joined.members}
        partitions = {
            topic: await partitions_of(self.cluster, topic)
            for topic in sorted({topic for topics in wishes.values() for topic in topics})
        }
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(given))
            for member_id, given in assign_ranges(wishes, partitions).items()
        ]

    async def _coordinator(self) -> Connection:
        homes = await find_coordinators(self.cluster, CoordinatorKind.GROUP, [self.group_id])
        return await self.cluster.broker(homes[self.group_id])

    async def _ask(self, request: Message, answer: type[Answer], *, at_most: int | None = None) -> Answer:
        """A join is answered when the last member has come, so it is given the time for that."""
        connection = await self._coordinator()
        if not connection.supports(request.API_KEY):
            raise ApiMissing(f"the broker at {connection.peer} knows nothing of groups")
        patience = self.rebalance_timeout_ms / 1000 + _GRACE_SECONDS
        return await connection.request(request, answer, at_most=at_most, timeout=patience)


def assign_ranges(
    wishes: Mapping[str, Iterable[str]], partitions: Mapping[str, Sequence[TopicPartition]]
) -> dict[str, list[TopicPartition]]:
    """Of each topic, each member that wants it gets a range; the first ones get one more where it does not
    come out even. Every client's assignor of that name does the same."""
    given: dict[str, list[TopicPartition]] = {member_id: [] for member_id in wishes}
    for topic, all_of_it in partitions.items():
        readers = sorted(member_id for member_id, topics in wishes.items() if topic in topics)
        at = 0
        for index, member_id in enumerate(readers):
            share = len(all_of_it) // len(readers) + (index < len(all_of_it) % len(readers))
            given[member_id] += all_of_it[at : at + share]
            at += share
    return given


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return _with_version(
        _ASSIGNMENT_VERSION,
        ConsumerProtocolAssignment(
            assigned_partitions=[Assigned(topic=name, partitions=indexes) for name, indexes in topics.items()]
        ),
    )


def _subscribed(metadata: bytes) -> list[str]:
    reader = Reader(metadata)
    version = min(reader.int16(), ConsumerProtocolSubscription.MAX_VERSION)
    return ConsumerProtocolSubscription.decode(reader, version).topics


def _with_version(version: int, message: Message) -> bytes:
    writer = Writer()
    writer.int16(version)
    return writer.getvalue() + message.to_bytes(version)

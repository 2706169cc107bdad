"""A member of a classic group of any kind: joins, is given its share, says that it lives, and leaves.

What members tell each other when they join, and what the leader gives to each, is bytes to the group: a
subclass says what they mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.connection import Answer, Connection
from headrace.client.coordinators import CoordinatorKind, find_coordinators
from headrace.client.errors import ApiMissing
from headrace.client.refusals import refusal
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.protocol.messages.sync_group_response import SyncGroupResponse

_FIRST_NAMED_LEAVE: Final = 3
_GRACE_SECONDS: Final = 10.0
REJOIN: Final = frozenset(
    (
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    )
)
"""Codes after which a member joins again. The group goes on without it until then."""


class ClassicMember(ABC):
    protocol_type: str
    protocol_name: str

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        *,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        self.cluster = cluster
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = ""
        self.generation = -1
        self.is_leader = False

    @abstractmethod
    def metadata(self) -> bytes:
        """What this member tells when it joins."""

    @abstractmethod
    async def assign(self, told: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """As the leader: what each member gets, by what each has told."""

    async def join_group(self) -> bytes:
        """What this member gets. Comes back when all members have joined, which can take a while."""
        while True:
            joined = await self.cluster.retried(self._join)
            self.member_id = joined.member_id
            if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            if joined.error_code in REJOIN:
                continue
            self.generation = joined.generation_id
            self.is_leader = joined.leader == joined.member_id
            assignments: list[SyncGroupRequestAssignment] = []
            if self.is_leader:
                told = {member.member_id: bytes(member.metadata) for member in joined.members}
                assignments = [
                    SyncGroupRequestAssignment(member_id=member_id, assignment=given)
                    for member_id, given in (await self.assign(told)).items()
                ]
            synced = await self.cluster.retried(partial(self._sync, assignments))
            if synced.error_code in REJOIN:
                continue
            return bytes(synced.assignment)

    async def heartbeat(self) -> bool:
        """Whether all is as it was. If not, join again."""
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )

        async def attempt() -> int:
            reply = await self._ask(request, HeartbeatResponse)
            return self._checked(reply.error_code)

        return await self.cluster.retried(attempt) == 0

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
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=self.protocol_name, metadata=self.metadata())],
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
            request.protocol_type, request.protocol_name = self.protocol_type, self.protocol_name
        reply = await self._ask(request, SyncGroupResponse)
        self._checked(reply.error_code)
        return reply

    def _checked(self, code: int) -> int:
        """The code, if it is none or one after which to join again."""
        if code and code not in REJOIN:
            raise refusal(code, f"group {self.group_id}")
        return code

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

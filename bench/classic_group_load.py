"""A classic group whose members are played by hand, with a connection each.

A member asks for its next heartbeat as soon as the group has something to tell, instead of seconds later. So
the time of a rebalance is the broker's, not that of an interval.
"""

from __future__ import annotations

import asyncio
import time

from bench.load_generator import LoadFailed
from bench.raw_client import GROUP_KEYS, NOT_READY, PAUSE_S, RawClient, find_coordinators, require
from headrace.client.group_member import assign_ranges, encode_assignment
from headrace.client.groups import CONSUMER_PROTOCOL, classic_assignment
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.protocol.messages.heartbeat_request import HeartbeatRequest
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.protocol.messages.sync_group_response import SyncGroupResponse

JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
LEAVE_VERSION = 5
SESSION_MS = 300_000
"""So long that nobody has to heartbeat between two rebalances."""
REBALANCE_MS = 300_000
ASSIGNOR = "range"
SUBSCRIPTION_VERSION = 1


class ClassicMember:
    def __init__(self, client: RawClient, group_id: str, topic: str, partitions: int) -> None:
        self._client = client
        self._group_id = group_id
        self._topic = topic
        self._all = [TopicPartition(topic, index) for index in range(partitions)]
        subscription = ConsumerProtocolSubscription(topics=[topic]).to_bytes(SUBSCRIPTION_VERSION)
        self._metadata = SUBSCRIPTION_VERSION.to_bytes(2, "big") + subscription
        self._member_id = ""
        self.generation = -1
        self.assigned: list[TopicPartition] = []

    async def introduce(self) -> None:
        """Ask for a member id, which is not yet a membership."""
        while (answer := await self._join()).error_code in NOT_READY:
            await asyncio.sleep(PAUSE_S)
        if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            raise LoadFailed(f"a new member was answered with {ErrorCode(answer.error_code).name}")
        self._member_id = answer.member_id

    async def take_part(self) -> None:
        """Join, wait for the others, and be given partitions."""
        joined = await self._join()
        require(joined.error_code, "JoinGroup")
        self.generation = joined.generation_id
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == joined.member_id:
            given = assign_ranges(
                {member.member_id: [self._topic] for member in joined.members}, {self._topic: self._all}
            )
            assignments = [
                SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(each))
                for member_id, each in given.items()
            ]
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self._member_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=ASSIGNOR,
            assignments=assignments,
        )
        synced = await self._client.ask(request, SYNC_VERSION, SyncGroupResponse)
        require(synced.error_code, "SyncGroup")
        self.assigned = classic_assignment(synced.assignment)

    async def follow(self) -> None:
        """Learn that the group rebalances, and take part."""
        while (code := await self.heartbeat()) != ErrorCode.REBALANCE_IN_PROGRESS:
            require(code, "Heartbeat")
        await self.take_part()

    async def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id=self._group_id, generation_id=self.generation, member_id=self._member_id
        )
        return (await self._client.ask(request, HEARTBEAT_VERSION, HeartbeatResponse)).error_code

    async def leave(self) -> None:
        request = LeaveGroupRequest(
            group_id=self._group_id, members=[MemberIdentity(member_id=self._member_id)]
        )
        answer = await self._client.ask(request, LEAVE_VERSION, LeaveGroupResponse)
        require(answer.error_code or answer.members[0].error_code, "LeaveGroup")
        self._member_id = ""

    async def _join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=[JoinGroupRequestProtocol(name=ASSIGNOR, metadata=self._metadata)],
        )
        return await self._client.ask(request, JOIN_VERSION, JoinGroupResponse)


class ClassicGroup:
    """Every partition belongs to one member after each step, or the step has failed."""

    def __init__(self, clients: list[RawClient], group_id: str, topic: str, partitions: int) -> None:
        self._group_id = group_id
        self._clients = clients
        self._partitions = partitions
        self._members = [ClassicMember(client, group_id, topic, partitions) for client in clients]
        self._absent: list[ClassicMember] = []

    async def form(self) -> None:
        await find_coordinators(self._clients[0], GROUP_KEYS, [self._group_id])
        await asyncio.gather(*(member.introduce() for member in self._members))
        await asyncio.gather(*(member.take_part() for member in self._members))
        self._check()

    async def lose_one(self) -> float:
        """A member leaves; the seconds until the others have all partitions."""
        leaving = self._members.pop(0)
        self._absent.append(leaving)
        began = time.monotonic()
        await leaving.leave()
        await asyncio.gather(*(member.follow() for member in self._members))
        seconds = time.monotonic() - began
        self._check()
        return seconds

    async def gain_one(self) -> float:
        """The one that left comes back, as a new member."""
        coming = self._absent.pop()
        began = time.monotonic()
        await coming.introduce()
        await asyncio.gather(coming.take_part(), *(member.follow() for member in self._members))
        seconds = time.monotonic() - began
        self._members.append(coming)
        self._check()
        return seconds

    async def check_membership(self) -> None:
        for member in self._members:
            require(await member.heartbeat(), "Heartbeat")

    def _check(self) -> None:
        assigned = [each for member in self._members for each in member.assigned]
        if len(assigned) != self._partitions or len(set(assigned)) != self._partitions:
            raise LoadFailed(f"{len(assigned)} partitions are assigned instead of {self._partitions}")
        if len({member.generation for member in self._members}) != 1:
            raise LoadFailed("the members are not of one generation")

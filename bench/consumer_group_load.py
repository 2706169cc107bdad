"""A group of the server-side protocol (KIP-848) whose members are played by hand, with a connection each.

Members heartbeat in rounds, one right after the other, and do at once what they are told. So the time of a
rebalance is the broker's, not that of an interval.
"""

from __future__ import annotations

import asyncio
import time
from uuid import UUID, uuid4

from bench.load_generator import LoadFailed
from bench.raw_client import GROUP_KEYS, NOT_READY, PAUSE_S, RawClient, find_coordinators, require
from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from headrace.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

HEARTBEAT_VERSION = 1
DESCRIBE_VERSION = 0
REBALANCE_MS = 300_000
JOINING = 0
LEAVING = -1
IDLE_ROUND_S = 0.002
"""After a round that told nobody anything: somebody computes. Doubled each time."""
LONGEST_IDLE_S = 0.2
LIMIT_S = 60.0
STABLE = "Stable"

Owned = frozenset[tuple[UUID, int]]


class ConsumerMember:
    def __init__(self, client: RawClient, group_id: str, topic: str) -> None:
        self._client = client
        self._group_id = group_id
        self._topic = topic
        self._member_id = ""
        self._told: Owned | None = None
        """What this member has last said that it owns."""
        self.epoch = JOINING
        self.owned: Owned = frozenset()

    async def join(self) -> None:
        self._member_id = str(uuid4())
        self.epoch, self.owned, self._told = JOINING, frozenset(), None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=JOINING,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=[self._topic],
            topic_partitions=[],
        )
        while True:
            answer = await self._client.ask(request, HEARTBEAT_VERSION, ConsumerGroupHeartbeatResponse)
            if answer.error_code not in NOT_READY:
                break
            await asyncio.sleep(PAUSE_S)
        self._take(answer)
        self._told = frozenset()

    async def heartbeat(self) -> bool:
        """Whether anything is new."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self._member_id, member_epoch=self.epoch
        )
        if self.owned != self._told:
            topics: dict[UUID, list[int]] = {}
            for topic_id, index in self.owned:
                topics.setdefault(topic_id, []).append(index)
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()
            ]
            self._told = self.owned
        before = (self.epoch, self.owned)
        self._take(await self._client.ask(request, HEARTBEAT_VERSION, ConsumerGroupHeartbeatResponse))
        return before != (self.epoch, self.owned)

    @property
    def has_told(self) -> bool:
        return self.owned == self._told

    async def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self._member_id, member_epoch=LEAVING
        )
        answer = await self._client.ask(request, HEARTBEAT_VERSION, ConsumerGroupHeartbeatResponse)
        require(answer.error_code, "leaving")

    async def state_of_group(self) -> str:
        request = ConsumerGroupDescribeRequest(group_ids=[self._group_id])
        answer = await self._client.ask(request, DESCRIBE_VERSION, ConsumerGroupDescribeResponse)
        return answer.groups[0].group_state

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        require(answer.error_code, "ConsumerGroupHeartbeat")
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = frozenset(
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )


class ConsumerGroup:
    """Every partition belongs to one member after each step, or the step has failed."""

    def __init__(self, clients: list[RawClient], group_id: str, topic: str, partitions: int) -> None:
        self._group_id = group_id
        self._clients = clients
        self._partitions = partitions
        self._members = [ConsumerMember(client, group_id, topic) for client in clients]
        self._absent: list[ConsumerMember] = []

    async def form(self) -> None:
        await find_coordinators(self._clients[0], GROUP_KEYS, [self._group_id])
        for member in self._members:
            await member.join()
        give_up = time.monotonic() + LIMIT_S
        while await self._members[0].state_of_group() != STABLE:  # assignments may wait for an interval
            await self._settle(self._epoch())
            if time.monotonic() > give_up:
                raise LoadFailed(f"{self._group_id} did not become stable")
        await self._check()

    async def lose_one(self) -> float:
        leaving = self._members.pop(0)
        self._absent.append(leaving)
        epoch = self._epoch()
        began = time.monotonic()
        await leaving.leave()
        await self._settle(epoch + 1)
        seconds = time.monotonic() - began
        await self._check()
        return seconds

    async def gain_one(self) -> float:
        coming = self._absent.pop()
        epoch = self._epoch()
        began = time.monotonic()
        await coming.join()
        self._members.append(coming)
        await self._settle(epoch + 1)
        seconds = time.monotonic() - began
        await self._check()
        return seconds

    async def check_membership(self) -> None:
        for member in self._members:
            if await member.heartbeat():
                raise LoadFailed(f"{self._group_id} was not at rest")

    def _epoch(self) -> int:
        return max(member.epoch for member in self._members)

    async def _settle(self, epoch: int) -> None:
        """Until all members are in this epoch or a later one, and have said that they own what is theirs."""
        idle_s = IDLE_ROUND_S
        give_up = time.monotonic() + LIMIT_S
        while True:
            news = await asyncio.gather(*(member.heartbeat() for member in self._members))
            if self._is_settled(epoch):
                return
            if not any(news):
                await asyncio.sleep(idle_s)
                idle_s = min(2 * idle_s, LONGEST_IDLE_S)
            if time.monotonic() > give_up:
                raise LoadFailed(f"{self._group_id} did not come to rest")

    def _is_settled(self, epoch: int) -> bool:
        newest = self._epoch()
        return (
            newest >= epoch
            and all(member.epoch == newest and member.has_told for member in self._members)
            and sum(len(member.owned) for member in self._members) == self._partitions
        )

    async def _check(self) -> None:
        owned = [each for member in self._members for each in member.owned]
        if len(set(owned)) != self._partitions:
            raise LoadFailed(f"{len(set(owned))} partitions are owned instead of {self._partitions}")
        state = await self._members[0].state_of_group()
        if state != STABLE:
            raise LoadFailed(f"{self._group_id} is {state}")

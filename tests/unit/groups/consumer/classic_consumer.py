"""A consumer of the classic protocol, as librdkafka's or Java's are, that talks to any group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.groups.consumer.embedded_protocol import read_assignment, read_subscription
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from headrace.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.primitives import Writer
from tests.unit.groups.classic.coordinator import DELAY_MS, Asked
from tests.unit.groups.consumer.coordinator import ConsumerCoordinator, Partitions

VERSION = 3


def written(
    message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int = VERSION
) -> bytes:
    writer = Writer()
    writer.int16(version)
    message.encode(writer, version)
    return writer.getvalue()


class ClassicConsumer:
    """Cooperative: it says what it owns when it joins, and keeps what it is assigned again."""

    def __init__(
        self,
        coordinator: ConsumerCoordinator,
        topics: Iterable[str] = ("t",),
        *,
        instance: str | None = None,
        protocol: str = "cooperative-sticky",
    ) -> None:
        self.coordinator = coordinator
        self.topics = list(topics)
        self.instance = instance
        self.protocol = protocol
        self.member_id = ""
        self.generation = -1
        self.partitions: Partitions = {}
        self.joining: Asked[JoinGroupResponse] | None = None

    def metadata(self) -> bytes:
        owned = [
            TopicPartition(topic=name, partitions=sorted(each)) for name, each in self.partitions.items()
        ]
        return written(ConsumerProtocolSubscription(topics=self.topics, owned_partitions=owned))

    def join(self, **rest: Any) -> Asked[JoinGroupResponse]:
        """The first time, for an id; with it, at once for real."""
        asked = self._join(**rest)
        if not asked.is_parked and asked.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = asked.answer.member_id
            asked = self._join(**rest)
        self.joining = asked
        return asked

    def _join(self, **rest: Any) -> Asked[JoinGroupResponse]:
        protocols = ((self.protocol, self.metadata()),)
        return self.coordinator.join(self.member_id, instance=self.instance, protocols=protocols, **rest)

    def sync(self, assignments: dict[str, bytes] | None = None) -> ErrorCode:
        assert self.joining is not None
        joined = self.joining.answer
        assert joined.error_code == 0, ErrorCode(joined.error_code)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        asked = self.coordinator.sync(
            self.member_id, self.generation, assignments, instance=self.instance, protocol_name=self.protocol
        )
        if asked.error is ErrorCode.NONE:
            given = read_assignment(asked.answer.assignment)
            self.partitions = {each.topic: set(each.partitions) for each in given.assigned_partitions}
        return asked.error

    def join_and_sync(self) -> ErrorCode:
        self.join()
        return self.sync()

    def heartbeat(self) -> ErrorCode:
        """Joins again when it is told to."""
        code = self.coordinator.heartbeat(self.member_id, self.generation, instance=self.instance)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join_and_sync()
        return code

    def leave(self) -> ErrorCode:
        (code,) = self.coordinator.leave((self.member_id, self.instance))
        self.partitions = {}
        return code


def lead(*members: ClassicConsumer) -> None:
    """All of them join a classic group; the leader gives the partitions of each topic out in turn."""
    joins = [member.join() for member in members]
    if joins[0].is_parked:
        members[0].coordinator.advance(2 * DELAY_MS)
    for member, joined in zip(members, joins, strict=True):
        member.member_id = joined.answer.member_id
    leader = next(each for each in members if each.member_id == joins[0].answer.leader)
    counts = leader.coordinator.topics.counts
    given: dict[str, Partitions] = {member.member_id: {} for member in members}
    for told in joins[members.index(leader)].answer.members:
        for name in read_subscription(told.metadata).topics:
            ids = sorted(given)
            for number in range(counts[name]):
                given[ids[number % len(ids)]].setdefault(name, set()).add(number)
    assignments = {
        member_id: written(
            ConsumerProtocolAssignment(
                assigned_partitions=[
                    Assigned(topic=name, partitions=sorted(each)) for name, each in parts.items()
                ],
                user_data=None,
            )
        )
        for member_id, parts in given.items()
    }
    assert leader.sync(assignments) is ErrorCode.NONE
    for member in members:
        if member is not leader:
            assert member.sync() is ErrorCode.NONE

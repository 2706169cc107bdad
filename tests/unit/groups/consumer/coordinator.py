"""A coordinator with topics, and consumers of the server-side protocol that talk to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headrace.core.errors import FencedMemberEpoch, HeadraceError, UnknownMember
from headrace.groups.classic.joins import Client
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.group_config import GroupConfig
from headrace.groups.shard import GroupShard
from headrace.protocol.messages.consumer_group_describe_response import DescribedGroup
from headrace.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tests.unit.groups.classic.coordinator import GROUP, Coordinator

SESSION_MS = 45_000
INTERVAL_MS = 5_000
REBALANCE_MS = 300_000
Partitions = dict[str, set[int]]
CLIENT = Client(1, "client", "/127.0.0.1")


class Topics:
    """Implements groups.topics_view.TopicsView, by hand."""

    def __init__(self, **partition_counts: int) -> None:
        self.version = 1
        self.counts: dict[str, int] = {}
        self.ids: dict[str, UUID] = {}
        self.racks_of: dict[str, tuple[str, ...]] = {}
        self._made = 0
        for name, count in partition_counts.items():
            self.put(name, count)

    def put(self, name: str, count: int) -> None:
        """Creates a topic, or gives it more partitions."""
        self.version += 1
        self.counts[name] = count
        if name not in self.ids:
            self._made += 1
            self.ids[name] = UUID(int=self._made)

    def delete(self, name: str) -> None:
        self.version += 1
        del self.counts[name], self.ids[name]

    def names(self) -> Iterable[str]:
        return list(self.counts)

    def id_of(self, name: str) -> UUID | None:
        return self.ids.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return next((name for name, each in self.ids.items() if each == topic_id), None)

    def partition_count(self, name: str) -> int | None:
        return self.counts.get(name)

    def racks(self, name: str, partition: int) -> tuple[str, ...]:
        return self.racks_of.get(name, ())

    def by_name(self, topics: Iterable[Any]) -> Partitions:
        """Of any structures with topic ids and partitions."""
        named = {self.name_of(each.topic_id) or "gone": set(each.partitions) for each in topics}
        return {name: numbers for name, numbers in named.items() if numbers}


@dataclass
class ConsumerCoordinator(Coordinator):
    topics: Topics = field(default_factory=lambda: Topics(t=4))
    own: dict[str, GroupConfig] = field(default_factory=dict)
    """Of groups that have settings of their own."""

    def __post_init__(self) -> None:
        self.timers = {}
        self._armed = 0
        self.parked = {}
        self.shard = GroupShard(self, self.topics, self.config, self.random, own=self.own)
        self._replay_log()
        self._carry_out(self.shard.on_loaded(self.now_ms), None)

    def failover(self) -> ConsumerCoordinator:
        return ConsumerCoordinator(
            config=self.config,
            log=list(self.log),
            written_ms=list(self.written_ms),
            now_ms=self.now_ms,
            random=self.random,  # begun anew, it would give a second member the id of the first
            topics=self.topics,
            own=self.own,
        )

    @property
    def consumers(self) -> ConsumerGroup:
        group = self.shard.groups.require(GROUP)
        assert isinstance(group, ConsumerGroup)
        return group

    def beat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client = CLIENT
    ) -> ConsumerGroupHeartbeatResponse:
        """Raises what the group refuses."""
        return self._ask(lambda _: self.shard.consumer.heartbeat(request, client, self.now_ms)).answer

    def describe(self, group: str = GROUP) -> DescribedGroup:
        return self._ask(lambda _: self.shard.consumer.describe(group)).answer


class Consumer:
    """Keeps what it is assigned, and gives up the rest at once unless it is told to be slow."""

    def __init__(
        self,
        coordinator: ConsumerCoordinator,
        member_id: str,
        topics: Iterable[str] | None = ("t",),
        *,
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rack: str | None = None,
        rebalance_ms: int = REBALANCE_MS,
    ) -> None:
        self.coordinator = coordinator
        self.member_id = member_id
        self.topics = None if topics is None else list(topics)
        self.regex = regex
        self.instance = instance
        self.assignor = assignor
        self.rack = rack
        self.rebalance_ms = rebalance_ms
        self.epoch = 0
        self.owned: dict[UUID, set[int]] = {}
        self.wanted: dict[UUID, set[int]] = {}
        self.told: dict[UUID, set[int]] | None = None
        self.tells_all = False
        """As clients do when they have looked for the coordinator anew."""

    @property
    def partitions(self) -> Partitions:
        names = self.coordinator.topics
        return {names.name_of(each) or "gone": numbers for each, numbers in self.owned.items() if numbers}

    @property
    def count(self) -> int:
        return sum(map(len, self.owned.values()))

    def request(self, *, full: bool = False) -> ConsumerGroupHeartbeatRequest:
        whole = full or self.tells_all or self.epoch == 0
        tells = whole or self.told != self.owned
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance,
            rack_id=self.rack if whole else None,
            rebalance_timeout_ms=self.rebalance_ms if whole else -1,
            subscribed_topic_names=self.topics if whole else None,
            subscribed_topic_regex=self.regex if whole else None,
            server_assignor=self.assignor if whole else None,
            topic_partitions=[
                TopicPartitions(topic_id=each, partitions=sorted(numbers))
                for each, numbers in self.owned.items()
                if numbers
            ]
            if tells
            else None,
        )

    def beat(
        self, *, full: bool = False, slow: bool = False, lost: bool = False
    ) -> ConsumerGroupHeartbeatResponse:
        """`slow`: does not give up yet what it should. `lost`: never sees the answer."""
        owned = {each: set(numbers) for each, numbers in self.owned.items()}
        answer = self.coordinator.beat(self.request(full=full))
        if lost:
            return answer
        self.told = owned
        self.tells_all = False
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.wanted = {each.topic_id: set(each.partitions) for each in answer.assignment.topic_partitions}
        if not slow:
            self.settle()
        return answer

    def settle(self) -> None:
        """Gives up what is not its own any more; what is new it takes only when that is done."""
        self.owned = {each: set(numbers) for each, numbers in self.wanted.items()}

    def beat_or_rejoin(self) -> None:
        try:
            self.beat()
        except (FencedMemberEpoch, UnknownMember):
            self.abandon()
            self.beat()

    def abandon(self) -> None:
        self.epoch, self.owned, self.wanted, self.told = 0, {}, {}, None

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        answer = self.coordinator.beat(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP, member_id=self.member_id, instance_id=self.instance, member_epoch=epoch
            )
        )
        self.abandon()
        return answer

    def refusal(self, **rest: Any) -> HeadraceError:
        try:
            self.beat(**rest)
        except HeadraceError as error:
            return error
        raise AssertionError("was not refused")


def settle(*consumers: Consumer, rounds: int = 6) -> None:
    """Everybody reports until the group has come to rest."""
    for _ in range(rounds):
        for consumer in consumers:
            consumer.beat()
        if consumers:
            consumers[0].coordinator.advance(INTERVAL_MS)

"""A classic group that a consumer joins, and in which members of both protocols come and go.

As long as one consumer of the server-side protocol is there, no partition may have two owners, whichever
protocols they speak; and when everybody reports, all partitions are given out.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from headrace.core.errors import (
    FencedMemberEpoch,
    HeadraceError,
    IllegalGeneration,
    RebalanceInProgress,
    UnknownMember,
)
from tests.unit.groups.classic.coordinator import GROUP
from tests.unit.groups.consumer.classic_consumer import ClassicConsumer, lead
from tests.unit.groups.consumer.coordinator import Consumer, ConsumerCoordinator, Topics
from tests.unit.groups.consumer.test_failover import lasting

LOST = (FencedMemberEpoch, UnknownMember, IllegalGeneration)


class MixedGroupModel(RuleBasedStateMachine):
    classics = Bundle("classics")
    moderns = Bundle("moderns")

    def __init__(self) -> None:
        super().__init__()
        self.coordinator = ConsumerCoordinator(topics=Topics(t=5, u=2))
        self.classic: list[ClassicConsumer] = []
        self.modern: list[Consumer] = []
        self.anchor: Consumer
        self.made = 0

    @property
    def everybody(self) -> list[ClassicConsumer | Consumer]:
        return [*self.classic, *self.modern]

    @initialize(size=st.integers(1, 3))
    def upgrade(self, size: int) -> None:
        self.classic = [ClassicConsumer(self.coordinator) for _ in range(size)]
        lead(*self.classic)
        self.anchor = self._new()

    @rule(target=moderns)
    def join(self) -> Consumer:
        return self._new()

    def _new(self) -> Consumer:
        self.made += 1
        consumer = Consumer(self.coordinator, f"m{self.made}", ["t", "u"])
        self.modern.append(consumer)
        consumer.beat()
        return consumer

    @rule(target=classics, topics=st.sampled_from([["t"], ["t", "u"]]))
    def join_classic(self, topics: list[str]) -> ClassicConsumer:
        consumer = ClassicConsumer(self.coordinator, topics)
        self.classic.append(consumer)
        self._rejoin(consumer)
        return consumer

    def _rejoin(self, consumer: ClassicConsumer) -> None:
        try:
            consumer.join_and_sync()
        except RebalanceInProgress:
            pass
        except LOST:
            consumer.member_id, consumer.partitions = "", {}

    @rule(number=st.integers(0, 9), eager=st.booleans())
    def report_classic(self, number: int, eager: bool) -> None:
        """An eager one gives everything up before it joins again."""
        if not self.classic:
            return
        consumer = self.classic[number % len(self.classic)]
        try:
            code = self.coordinator.heartbeat(consumer.member_id, consumer.generation)
        except LOST:
            consumer.member_id, consumer.partitions = "", {}
            self._rejoin(consumer)
            return
        if code != 0:
            if eager:
                consumer.partitions = {}
            self._rejoin(consumer)

    @rule(number=st.integers(0, 9), slow=st.booleans())
    def report(self, number: int, slow: bool) -> None:
        consumer = self.modern[number % len(self.modern)]
        try:
            consumer.beat(slow=slow)
        except LOST:
            consumer.abandon()
            if consumer is self.anchor:
                consumer.beat()

    @rule(consumer=consumes(classics))
    def leave_classic(self, consumer: ClassicConsumer) -> None:
        self.classic.remove(consumer)
        consumer.leave()

    @rule(consumer=consumes(moderns))
    def leave(self, consumer: Consumer) -> None:
        self.modern.remove(consumer)
        try:
            consumer.leave()
        except HeadraceError:
            consumer.abandon()

    @rule(by_ms=st.sampled_from([1_000, 4_000]))
    def time_passes(self, by_ms: int) -> None:
        """The anchor never misses its session, or the group would be a classic one."""
        self.coordinator.advance(by_ms)
        self.anchor.beat_or_rejoin()

    @rule()
    def fail_over(self) -> None:
        before = self.coordinator.consumers
        self.coordinator = self.coordinator.failover()
        for each in self.everybody:
            each.coordinator = self.coordinator
        for consumer in self.modern:
            consumer.tells_all = True
        assert lasting(self.coordinator.consumers) == lasting(before)

    @rule()
    def come_to_rest(self) -> None:
        for _ in range(24):
            for consumer in self.modern:
                consumer.beat_or_rejoin()
            for number in range(len(self.classic)):
                self.report_classic(number, eager=False)
            self.coordinator.advance(2_500)
        group = self.coordinator.consumers
        assert group.state_name == "Stable"
        assert len(group.members) == len(self.modern) + len(self.classic)
        owned = [each for partitions in self._owned().values() for each in partitions]
        assert sorted(owned) == [("t", n) for n in range(5)] + [("u", n) for n in range(2)]

    def _owned(self) -> dict[str, list[tuple[str, int]]]:
        """Of those whom the coordinator still counts among its members."""
        members = self.coordinator.consumers.members
        return {
            each.member_id: [(name, n) for name, numbers in each.partitions.items() for n in sorted(numbers)]
            for each in self.everybody
            if each.member_id in members
        }

    @invariant()
    def nothing_is_owned_twice(self) -> None:
        if GROUP not in self.coordinator.shard.groups:
            return
        owners: dict[tuple[str, int], str] = {}
        for member_id, partitions in self._owned().items():
            for partition in partitions:
                assert owners.setdefault(partition, member_id) == member_id


MixedGroupModel.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestMixedGroupModel = MixedGroupModel.TestCase


def test_members_who_joined_different_coordinators_have_different_ids() -> None:
    state = MixedGroupModel()
    state.upgrade(size=1)
    state.come_to_rest()
    state.fail_over()
    state.join_classic(topics=["t"])
    state.fail_over()
    state.join_classic(topics=["t"])
    state.come_to_rest()

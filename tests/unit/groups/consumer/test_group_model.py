"""Consumers that come, go, are slow, lose answers and fail over, in any order.

Safety: no partition is owned by two members at the same time. Liveness: when everybody reports, the group
comes to rest with all partitions given out as they should be.
"""

from __future__ import annotations

from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from headrace.core.errors import FencedMemberEpoch, HeadraceError, UnknownMember
from headrace.groups.consumer.group import ConsumerGroup
from tests.unit.groups.classic.coordinator import GROUP
from tests.unit.groups.consumer.coordinator import INTERVAL_MS, Consumer, ConsumerCoordinator, Topics
from tests.unit.groups.consumer.test_failover import lasting

SUBSCRIPTIONS = st.one_of(
    st.tuples(st.lists(st.sampled_from(["ta", "tb", "u"]), min_size=1, unique=True), st.none()),
    st.tuples(st.none(), st.sampled_from(["t.*", "u|tb"])),
)


class ConsumerGroupModel(RuleBasedStateMachine):
    consumers = Bundle("consumers")

    def __init__(self) -> None:
        super().__init__()
        self.topics = Topics(ta=3, tb=2)
        self.coordinator = ConsumerCoordinator(topics=self.topics)
        self.alive: dict[str, Consumer] = {}
        self.made = 0

    @property
    def group(self) -> ConsumerGroup | None:
        return self.coordinator.shard.groups.of_class(GROUP, ConsumerGroup)

    @rule(
        target=consumers,
        subscription=SUBSCRIPTIONS,
        assignor=st.sampled_from([None, "range", "uniform"]),
        rebalance_ms=st.sampled_from([20_000, 300_000]),
    )
    def join(
        self, subscription: tuple[list[str] | None, str | None], assignor: str | None, rebalance_ms: int
    ) -> Consumer:
        """Of some, nobody can wait until they are fenced."""
        self.made += 1
        names, regex = subscription
        consumer = Consumer(
            self.coordinator,
            f"m{self.made}",
            names,
            regex=regex,
            assignor=assignor,
            rebalance_ms=rebalance_ms,
        )
        self.alive[consumer.member_id] = consumer
        consumer.beat()
        return consumer

    @rule(consumer=consumers, slow=st.booleans(), lost=st.booleans(), full=st.booleans())
    def report(self, consumer: Consumer, slow: bool, lost: bool, full: bool) -> None:
        try:
            consumer.beat(slow=slow, lost=lost, full=full)
        except (FencedMemberEpoch, UnknownMember):
            consumer.abandon()

    @rule(consumer=consumers, subscription=SUBSCRIPTIONS)
    def resubscribe(self, consumer: Consumer, subscription: tuple[list[str] | None, str | None]) -> None:
        names, regex = subscription
        consumer.topics, consumer.regex = names or [], regex or ""
        self.report(consumer, slow=False, lost=False, full=True)

    @rule(consumer=consumes(consumers))
    def leave(self, consumer: Consumer) -> None:
        del self.alive[consumer.member_id]
        try:
            consumer.leave()
        except HeadraceError:
            consumer.abandon()

    @rule(consumer=consumes(consumers))
    def vanish(self, consumer: Consumer) -> None:
        """It says nothing. What it owned is nobody's, but the coordinator has to find that out by itself."""
        del self.alive[consumer.member_id]
        consumer.abandon()

    @rule(by_ms=st.sampled_from([100, 1_000, INTERVAL_MS, 20_000]))
    def time_passes(self, by_ms: int) -> None:
        self.coordinator.advance(by_ms)

    @rule()
    def fail_over(self) -> None:
        before = self.group
        self.coordinator = self.coordinator.failover()
        for consumer in self.alive.values():
            consumer.coordinator = self.coordinator
            consumer.tells_all = True
        if before is not None:
            assert self.group is not None
            assert lasting(self.group) == lasting(before)

    @rule(name=st.sampled_from(["ta", "tb", "u"]), more=st.integers(1, 2))
    def grow(self, name: str, more: int) -> None:
        if self.topics.counts.get(name, 0) < 6:
            self.topics.put(name, self.topics.counts.get(name, 0) + more)

    @rule(name=st.sampled_from(["tb", "u"]))
    def delete_topic(self, name: str) -> None:
        if name in self.topics.counts:
            self.topics.delete(name)

    @rule()
    def come_to_rest(self) -> None:
        for _ in range(14):
            for consumer in self.alive.values():
                consumer.beat_or_rejoin()
            self.coordinator.advance(INTERVAL_MS)
        group = self.group
        if not self.alive:
            return
        assert group is not None
        assert group.state_name == "Stable"
        assert set(group.members) == set(self.alive), "who vanished is gone"
        wanted = {
            (topic_id, number)
            for name in self._subscribed()
            if (topic_id := self.topics.id_of(name)) is not None
            for number in range(self.topics.counts[name])
        }
        owned = {
            (topic_id, number)
            for consumer in self.alive.values()
            for topic_id, numbers in consumer.owned.items()
            for number in numbers
        }
        assert owned == wanted
        for consumer in self.alive.values():
            assert group.targets[consumer.member_id] == {
                topic_id: numbers for topic_id, numbers in consumer.owned.items() if numbers
            }

    def _subscribed(self) -> set[str]:
        matched = {"t.*": ("ta", "tb"), "u|tb": ("u", "tb")}
        return {
            name
            for consumer in self.alive.values()
            for name in [*(consumer.topics or ()), *matched.get(consumer.regex or "", ())]
        }

    @invariant()
    def nothing_is_owned_twice(self) -> None:
        """By those whom the coordinator still counts among its members."""
        group = self.group
        owners: dict[tuple[UUID, int], str] = {}
        for consumer in self.alive.values():
            member = None if group is None else group.members.get(consumer.member_id)
            if member is None or group is None:
                continue
            for topic_id, numbers in consumer.owned.items():
                for number in numbers:
                    assert owners.setdefault((topic_id, number), consumer.member_id) == consumer.member_id
                    assert member.held_since(topic_id, number) is not None, "owns what it was not given"
                    assert group.owners[topic_id][number] == consumer.member_id

    @invariant()
    def what_is_counted_is_right(self) -> None:
        group = self.group
        if group is None:
            return
        counts: dict[str, int] = {}
        for member in group.members.values():
            for name in member.subscribed_names:
                counts[name] = counts.get(name, 0) + 1
        assert group.topic_counts == counts
        held = {
            (topic_id, number): member.member_id
            for member in group.members.values()
            for part in (member.assigned, member.pending_revocation)
            for topic_id, numbers in part.items()
            for number in numbers
        }
        assert held == {
            (topic_id, number): owner
            for topic_id, numbers in group.owners.items()
            for number, owner in numbers.items()
        }


ConsumerGroupModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestConsumerGroupModel = ConsumerGroupModel.TestCase

"""Groups that change their protocol, and groups with members of both."""

from __future__ import annotations

import pytest

from headrace.core.errors import (
    GroupNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.group_config import GroupConfig
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tests.unit.groups.classic.coordinator import GROUP, SESSION_MS
from tests.unit.groups.consumer.classic_consumer import ClassicConsumer, lead, written
from tests.unit.groups.consumer.coordinator import INTERVAL_MS, Consumer, ConsumerCoordinator, Topics
from tests.unit.groups.consumer.test_failover import lasting


def kind(coordinator: ConsumerCoordinator) -> type:
    return type(coordinator.shard.groups.require(GROUP))


def rounds(*members: Consumer | ClassicConsumer, count: int = 6) -> None:
    for _ in range(count):
        for member in members:
            if isinstance(member, Consumer):
                member.beat()
            else:
                member.heartbeat()
        members[0].coordinator.advance(INTERVAL_MS // 2)


def both(coordinator: ConsumerCoordinator) -> tuple[ClassicConsumer, Consumer]:
    """A classic group of one that a consumer has joined."""
    old, new = ClassicConsumer(coordinator), Consumer(coordinator, "new")
    lead(old)
    new.beat()
    rounds(old, new)
    return old, new


# Empty groups


def test_an_empty_classic_group_becomes_a_consumer_group() -> None:
    coordinator = ConsumerCoordinator()
    old = ClassicConsumer(coordinator)
    lead(old)
    old.leave()
    assert kind(coordinator) is ClassicGroup
    new = Consumer(coordinator, "new")
    new.beat()
    assert kind(coordinator) is ConsumerGroup
    assert new.count == 4
    assert kind(coordinator.failover()) is ConsumerGroup


def test_an_empty_consumer_group_becomes_a_classic_group() -> None:
    coordinator = ConsumerCoordinator()
    new = Consumer(coordinator, "new")
    new.beat()
    new.leave()
    old = ClassicConsumer(coordinator)
    lead(old)
    assert kind(coordinator) is ClassicGroup
    assert old.partitions == {"t": {0, 1, 2, 3}}
    assert kind(coordinator.failover()) is ClassicGroup


def test_a_group_that_only_has_offsets_becomes_a_consumer_group() -> None:
    coordinator = ConsumerCoordinator()
    coordinator.shard.classic.create_simple_group(GROUP)
    Consumer(coordinator, "new").beat()
    assert kind(coordinator) is ConsumerGroup


def test_a_heartbeat_of_no_join_converts_nothing() -> None:
    coordinator = ConsumerCoordinator()
    lead(ClassicConsumer(coordinator))
    new = Consumer(coordinator, "new")
    new.epoch = 1
    refused = new.refusal()
    assert isinstance(refused, GroupNotFound)
    assert str(refused) == f"Group {GROUP} is not a consumer group."
    with pytest.raises(GroupNotFound):
        coordinator.describe()


# Live upgrades


def test_a_consumer_joins_a_living_classic_group() -> None:
    coordinator = ConsumerCoordinator()
    one, two, new = ClassicConsumer(coordinator), ClassicConsumer(coordinator), Consumer(coordinator, "new")
    lead(one, two)
    before = [one.partitions, two.partitions]
    new.beat()
    assert kind(coordinator) is ConsumerGroup
    assert [one.partitions, two.partitions] == before
    assert new.count == 0, "nothing is taken from anybody who has not given it up"
    rounds(one, two, new)
    assert coordinator.consumers.state_name == "Stable"
    owned = [*one.partitions.get("t", ()), *two.partitions.get("t", ()), *new.partitions.get("t", ())]
    assert sorted(owned) == [0, 1, 2, 3]
    assert new.count >= 1
    assert lasting(coordinator.failover().consumers) == lasting(coordinator.consumers)


def test_whoever_waits_for_the_classic_group_is_sent_away() -> None:
    coordinator = ConsumerCoordinator()
    old = ClassicConsumer(coordinator)
    lead(old)
    other = ClassicConsumer(coordinator)
    waits = other.join()
    assert waits.is_parked
    Consumer(coordinator, "new").beat()
    assert waits.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert other.join_and_sync() is ErrorCode.NONE
    assert not coordinator.parked


def test_classic_members_are_described_as_such() -> None:
    coordinator = ConsumerCoordinator()
    old, new = both(coordinator)
    types = {member.member_id: member.member_type for member in coordinator.describe().members}
    assert types == {old.member_id: 0, new.member_id: 1}


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [("bidirectional", True), ("UPGRADE", True), ("downgrade", False), ("disabled", False)],
)
def test_the_policy_decides_on_upgrades(policy: str, allowed: bool) -> None:
    coordinator = ConsumerCoordinator(GroupConfig(group_consumer_migration_policy=policy))
    lead(ClassicConsumer(coordinator))
    new = Consumer(coordinator, "new")
    if allowed:
        new.beat()
        assert kind(coordinator) is ConsumerGroup
    else:
        assert "online upgrade is disabled" in str(new.refusal())
        assert kind(coordinator) is ClassicGroup


def test_other_groups_than_of_consumers_stay_classic() -> None:
    coordinator = ConsumerCoordinator()
    coordinator.stable_group(1, protocol_type="connect")
    assert "does not use the consumer embedded protocol" in str(Consumer(coordinator, "new").refusal())
    assert kind(coordinator) is ClassicGroup


def test_what_cannot_be_read_stays_classic() -> None:
    coordinator = ConsumerCoordinator()
    coordinator.stable_group(1, protocols=(("range", b"?"),))
    assert "protocol is malformed" in str(Consumer(coordinator, "new").refusal())
    assert kind(coordinator) is ClassicGroup


def test_an_assignor_with_data_of_its_own_stays_classic() -> None:
    coordinator = ConsumerCoordinator()
    old = ClassicConsumer(coordinator)
    joined = old.join()
    coordinator.advance(10_000)
    mine = written(ConsumerProtocolAssignment(assigned_partitions=[], user_data=b"mine"))
    old.sync({joined.answer.member_id: mine})
    assert "custom assignor is in use" in str(Consumer(coordinator, "new").refusal())


def test_a_group_that_is_too_large_stays_classic() -> None:
    coordinator = ConsumerCoordinator(GroupConfig(group_consumer_max_size=1))
    lead(ClassicConsumer(coordinator), ClassicConsumer(coordinator))
    assert "size exceeds" in str(Consumer(coordinator, "new").refusal())


# Members of both protocols


def test_a_classic_member_joins_a_consumer_group() -> None:
    coordinator = ConsumerCoordinator()
    new = Consumer(coordinator, "new")
    new.beat()
    coordinator.advance(INTERVAL_MS)
    old = ClassicConsumer(coordinator)
    assert old.join_and_sync() is ErrorCode.NONE
    assert old.partitions == {}
    rounds(old, new)
    assert (len(old.partitions["t"]), new.count) == (2, 2)
    assert old.heartbeat() is ErrorCode.NONE


def test_a_classic_member_is_told_to_join_again_and_confirms_by_it() -> None:
    coordinator = ConsumerCoordinator()
    old, new = both(coordinator)
    assert (len(old.partitions["t"]), new.count) == (2, 2)
    third = Consumer(coordinator, "third")
    third.beat()
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    rounds(old, new, third)
    assert sorted([len(old.partitions["t"]), new.count, third.count]) == [1, 1, 2]


def test_who_is_told_to_join_again_and_does_not_is_removed() -> None:
    coordinator = ConsumerCoordinator()
    old, new = both(coordinator)
    Consumer(coordinator, "third").beat()
    for _ in range(40):
        if old.member_id not in coordinator.consumers.members:
            break
        coordinator.heartbeat(old.member_id, old.generation)
        new.beat_or_rejoin()
        coordinator.advance(INTERVAL_MS)
    assert old.member_id not in coordinator.consumers.members


def test_who_joins_and_does_not_sync_is_removed() -> None:
    coordinator = ConsumerCoordinator()
    old, new = both(coordinator)
    joined = old.join().answer
    for _ in range(40):
        if old.member_id not in coordinator.consumers.members:
            break
        coordinator.heartbeat(old.member_id, joined.generation_id)
        new.beat()
        coordinator.advance(INTERVAL_MS)
    assert old.member_id not in coordinator.consumers.members


def test_a_silent_classic_member_is_removed_after_its_own_session() -> None:
    coordinator = ConsumerCoordinator()
    _, new = both(coordinator)
    new.beat()
    coordinator.advance(SESSION_MS + 1)
    assert set(coordinator.consumers.members) == {"new"}


def test_requests_that_do_not_fit_are_refused() -> None:
    coordinator = ConsumerCoordinator()
    old, new = both(coordinator)
    with pytest.raises(UnknownMember):
        coordinator.heartbeat("nobody", 1)
    with pytest.raises(UnknownMember, match="does not use the classic protocol"):
        coordinator.heartbeat("new", new.epoch)
    with pytest.raises(IllegalGeneration):
        coordinator.heartbeat(old.member_id, old.generation + 1)
    with pytest.raises(InconsistentGroupProtocol):
        coordinator.sync(old.member_id, old.generation, protocol_name="range")
    with pytest.raises(InconsistentGroupProtocol):
        coordinator.sync(old.member_id, old.generation, protocol_type="connect")
    with pytest.raises(InconsistentGroupProtocol):
        coordinator.join(protocol_type="connect")
    with pytest.raises(InconsistentGroupProtocol):
        coordinator.join(protocols=(("unheard-of", old.metadata()),))
    Consumer(coordinator, "third").beat()
    with pytest.raises(RebalanceInProgress):
        coordinator.sync(old.member_id, old.generation)
    assert (
        coordinator.leave(("new", None), ("nobody", None), ("", "instance"))
        == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    )


# Live downgrades


def test_when_the_last_consumer_leaves_the_group_is_classic_again() -> None:
    coordinator = ConsumerCoordinator()
    old, new = both(coordinator)
    new.leave()
    coordinator.advance(0)
    assert kind(coordinator) is ClassicGroup
    assert coordinator.heartbeat(old.member_id, old.generation) is ErrorCode.REBALANCE_IN_PROGRESS
    lead(old)
    assert old.partitions == {"t": {0, 1, 2, 3}}
    assert coordinator.failover().described() == coordinator.described()


def test_a_consumer_that_dies_last_makes_the_group_classic() -> None:
    coordinator = ConsumerCoordinator()
    old, _ = both(coordinator)
    for _ in range(14):
        if kind(coordinator) is ClassicGroup:
            break
        old.heartbeat()
        coordinator.advance(INTERVAL_MS)
    assert kind(coordinator) is ClassicGroup
    assert kind(coordinator.failover()) is ClassicGroup
    lead(old)
    assert old.partitions == {"t": {0, 1, 2, 3}}


@pytest.mark.parametrize("policy", ["upgrade", "disabled"])
def test_the_policy_decides_on_downgrades(policy: str) -> None:
    coordinator = ConsumerCoordinator()
    old, new = both(coordinator)
    later = ConsumerCoordinator(
        GroupConfig(group_consumer_migration_policy=policy), list(coordinator.log), coordinator.now_ms
    )
    new.coordinator = old.coordinator = later
    new.leave()
    assert kind(later) is ConsumerGroup
    if policy == "disabled":
        with pytest.raises(InconsistentGroupProtocol, match="group migration is disabled"):
            old.join()


def test_while_classic_members_leave_the_group_stays_as_it_is() -> None:
    coordinator = ConsumerCoordinator()
    old, new = both(coordinator)
    assert old.leave() is ErrorCode.NONE
    rounds(new)
    assert new.count == 4
    assert kind(coordinator) is ConsumerGroup


# Static members that change their protocol


def test_a_static_member_comes_back_with_the_other_protocol() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(t=4))
    one, two = ClassicConsumer(coordinator, instance="i1"), ClassicConsumer(coordinator, instance="i2")
    lead(one, two)
    modern = Consumer(coordinator, "m1", instance="i1")
    before = one.partitions
    modern.beat()
    rounds(two, modern)
    assert kind(coordinator) is ConsumerGroup
    assert modern.partitions == before
    assert coordinator.consumers.static_members["i1"] == "m1"
    old = ClassicConsumer(coordinator, instance="i1")
    assert old.join_and_sync() is ErrorCode.NONE
    coordinator.advance(0)
    assert kind(coordinator) is ClassicGroup, "the last one of the server-side protocol is replaced"
    assert old.partitions == before
    assert two.heartbeat() is ErrorCode.NONE, "nobody else is disturbed"
    assert coordinator.failover().described() == coordinator.described()


def test_a_classic_successor_wants_only_what_it_says() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(aa=1, b=1))
    modern = Consumer(coordinator, "m1", [], regex="a.*", instance="i", assignor="range", rack="r")
    other = Consumer(coordinator, "m2", ["aa"])
    rounds(modern, other)
    old = ClassicConsumer(coordinator, ["b"], instance="i")
    old.join_and_sync()
    rounds(old, other)
    group = coordinator.consumers
    member = group.members[old.member_id]
    assert (member.subscribed_regex, member.server_assignor, member.rack_id) == ("", None, None)
    assert (group.resolved, group.regex_counts, group.server_assignors) == ({}, {}, {})
    assert (old.partitions, other.partitions) == ({"b": {0}}, {"aa": {0}})
    assert lasting(coordinator.failover().consumers) == lasting(group)


def test_what_another_still_holds_is_not_given_to_a_static_member_that_turns_classic() -> None:
    coordinator = ConsumerCoordinator()
    two, modern = ClassicConsumer(coordinator), Consumer(coordinator, "m1", instance="i1")
    lead(two)
    modern.beat()
    assert coordinator.consumers.targets["m1"], "it is meant to have what the other has not given up"
    old = ClassicConsumer(coordinator, instance="i1")
    old.join()
    coordinator.advance(0)
    assert kind(coordinator) is ClassicGroup
    assert old.sync() is ErrorCode.REBALANCE_IN_PROGRESS
    assert (old.partitions, two.partitions) == ({}, {"t": {0, 1, 2, 3}})
    assert coordinator.heartbeat(two.member_id, two.generation) is ErrorCode.ILLEGAL_GENERATION
    lead(two, old)
    assert (len(old.partitions["t"]), len(two.partitions["t"])) == (2, 2)


def test_a_static_member_that_turns_classic_and_wants_something_else_begins_a_rebalance() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(t=4, u=2))
    one, two = ClassicConsumer(coordinator, instance="i1"), ClassicConsumer(coordinator, instance="i2")
    lead(one, two)
    modern = Consumer(coordinator, "m1", instance="i1")
    modern.beat()
    rounds(two, modern)
    old = ClassicConsumer(coordinator, ["u"], instance="i1")
    old.join()
    coordinator.advance(0)
    assert kind(coordinator) is ClassicGroup
    assert old.sync() is ErrorCode.REBALANCE_IN_PROGRESS

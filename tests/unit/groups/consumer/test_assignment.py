"""Joining, leaving, and how partitions pass from one member to another."""

from __future__ import annotations

import pytest

from headrace.groups.consumer.member import MemberState
from headrace.groups.group_config import GroupConfig
from tests.unit.groups.consumer.coordinator import (
    INTERVAL_MS,
    SESSION_MS,
    Consumer,
    ConsumerCoordinator,
    Topics,
    settle,
)


def test_the_first_member_is_given_everything_at_once() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    answer = one.beat()
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m1", 2, INTERVAL_MS)
    assert one.partitions == {"t": {0, 1, 2, 3}}
    assert coordinator.consumers.state_name == "Stable"


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_says_no_assignment() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    one.beat()
    one.beat()
    size = len(coordinator.log)
    answer = one.beat()
    assert answer.assignment is None
    assert answer.member_epoch == 2
    assert len(coordinator.log) == size


def test_a_full_heartbeat_is_answered_with_the_whole_assignment() -> None:
    one = Consumer(ConsumerCoordinator(), "m1")
    one.beat()
    assert one.beat(full=True).assignment is not None


def test_a_partition_is_given_on_only_when_its_owner_has_confirmed() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    one.beat()
    coordinator.advance(INTERVAL_MS)
    two.beat()
    assert two.epoch == 3
    assert two.partitions == {}
    assert coordinator.consumers.members["m2"].state is MemberState.UNRELEASED_PARTITIONS
    one.beat(slow=True)
    assert coordinator.consumers.members["m1"].state is MemberState.UNREVOKED_PARTITIONS
    assert one.epoch == 2, "its epoch stands still until it confirms"
    two.beat()
    assert two.partitions == {}
    one.beat(slow=True)
    two.beat()
    assert two.partitions == {}, "a heartbeat that still names them confirms nothing"
    one.settle()
    two.beat()
    assert two.partitions == {}
    one.beat()
    assert one.epoch == 3
    two.beat()
    assert one.count == two.count == 2
    assert {*one.partitions["t"], *two.partitions["t"]} == {0, 1, 2, 3}
    assert coordinator.consumers.state_name == "Stable"


@pytest.mark.parametrize("full", [False, True])
def test_who_did_not_hear_what_to_give_up_is_told_again(full: bool) -> None:
    """librdkafka sends the same heartbeat once more, and everybody waits for what it gives up."""
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one)
    two.beat()
    for _ in range(3):
        assert one.beat(lost=True, full=full).assignment is not None
    settle(one, two)
    assert one.count == two.count == 2
    assert coordinator.consumers.state_name == "Stable"


def test_who_did_not_hear_what_it_was_given_is_told_again() -> None:
    """Its epoch is the one that it came with, so nothing else would tell it."""
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one)
    two.beat()
    one.beat()
    one.beat()
    assert two.beat(lost=True).assignment is not None
    assert coordinator.consumers.members["m2"].epoch == two.epoch
    two.beat()
    assert two.count == 2
    two.beat()
    assert two.beat().assignment is None, "it has said what it owns"
    assert not coordinator.consumers.unheard


def test_the_state_of_the_group_follows() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    one.beat()
    coordinator.advance(100)
    two.beat()
    assert coordinator.consumers.state_name == "Assigning", "the next assignment has to wait a second"
    coordinator.advance(INTERVAL_MS)
    two.beat()
    assert coordinator.consumers.state_name == "Reconciling"
    settle(one, two)
    assert coordinator.consumers.state_name == "Stable"
    one.leave()
    two.leave()
    assert coordinator.consumers.state_name == "Empty"


def test_members_that_come_together_are_assigned_together() -> None:
    coordinator = ConsumerCoordinator()
    members = [Consumer(coordinator, f"m{number}") for number in range(4)]
    for member in members:
        member.beat()
    assert coordinator.consumers.epoch == 5
    assert coordinator.consumers.assignment_epoch == 2
    settle(*members)
    assert [member.count for member in members] == [1, 1, 1, 1]
    assert {member.epoch for member in members} == {5}


def test_without_an_interval_each_change_is_assigned_at_once() -> None:
    coordinator = ConsumerCoordinator(GroupConfig(group_consumer_assignment_interval_ms=0))
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    one.beat()
    two.beat()
    assert coordinator.consumers.assignment_epoch == 3


def test_a_clock_that_is_behind_the_last_assignment_does_not_put_off_the_next() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one)
    coordinator.now_ms -= 60 * INTERVAL_MS
    loaded = coordinator.failover()
    one.coordinator = two.coordinator = loaded
    two.beat()
    assert loaded.consumers.assignment_epoch == loaded.consumers.epoch == 3
    settle(one, two)
    assert (one.count, two.count) == (2, 2)


def test_what_a_member_leaves_goes_to_the_others() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one, two)
    answer = two.leave()
    assert (answer.member_id, answer.member_epoch) == ("m2", -1)
    settle(one)
    assert one.partitions == {"t": {0, 1, 2, 3}}


def test_a_silent_member_is_removed_after_its_session() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one, two)
    for _ in range(SESSION_MS // INTERVAL_MS + 2):
        one.beat()
        coordinator.advance(INTERVAL_MS)
    assert list(coordinator.consumers.members) == ["m1"]
    settle(one)
    assert one.count == 4


def test_who_does_not_give_up_partitions_in_time_is_removed() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1", rebalance_ms=20_000), Consumer(coordinator, "m2")
    settle(one)
    for _ in range(10):
        two.beat()
        if "m1" not in coordinator.consumers.members:
            break
        one.beat(slow=True)
        coordinator.advance(INTERVAL_MS)
    assert list(coordinator.consumers.members) == ["m2"]
    settle(two)
    assert two.count == 4


def test_giving_up_in_time_ends_the_deadline() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1", rebalance_ms=20_000), Consumer(coordinator, "m2")
    settle(one)
    settle(one, two, rounds=12)
    assert set(coordinator.consumers.members) == {"m1", "m2"}


def test_a_changed_subscription_takes_partitions_away_at_once() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(t=2, u=2))
    one = Consumer(coordinator, "m1", ["t", "u"])
    settle(one)
    assert one.partitions == {"t": {0, 1}, "u": {0, 1}}
    one.topics = ["u"]
    one.beat(full=True)
    assert one.partitions == {"u": {0, 1}}
    assert coordinator.consumers.epoch == 3


def test_subscribing_to_nothing_keeps_the_membership() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1", [])
    one.beat()
    assert one.epoch == 1
    assert one.partitions == {}
    assert coordinator.consumers.state_name == "Stable"


def test_new_partitions_and_new_topics_are_given_out() -> None:
    topics = Topics(t=2)
    coordinator = ConsumerCoordinator(topics=topics)
    one = Consumer(coordinator, "m1", ["t", "later"])
    settle(one)
    assert one.partitions == {"t": {0, 1}}
    topics.put("t", 3)
    settle(one)
    assert one.partitions == {"t": {0, 1, 2}}
    topics.put("later", 1)
    settle(one)
    assert one.partitions == {"t": {0, 1, 2}, "later": {0}}


def test_a_deleted_topic_is_taken_away() -> None:
    topics = Topics(t=2, u=1)
    coordinator = ConsumerCoordinator(topics=topics)
    one = Consumer(coordinator, "m1", ["t", "u"])
    settle(one)
    topics.delete("u")
    settle(one)
    assert one.partitions == {"t": {0, 1}}


def test_metadata_that_changes_nothing_for_the_group_costs_no_epoch() -> None:
    topics = Topics(t=2)
    coordinator = ConsumerCoordinator(topics=topics)
    one = Consumer(coordinator, "m1")
    settle(one)
    topics.put("unrelated", 7)
    settle(one)
    assert coordinator.consumers.epoch == 2


def test_racks_that_change_are_a_reason_to_assign_again() -> None:
    topics = Topics(t=2)
    coordinator = ConsumerCoordinator(topics=topics)
    one = Consumer(coordinator, "m1")
    settle(one)
    topics.racks_of["t"] = ("a", "b")
    topics.version += 1
    settle(one)
    assert coordinator.consumers.epoch == 3


def test_most_members_decide_on_the_assignor() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(t=3, u=3))
    members = [
        Consumer(coordinator, "m1", ["t", "u"], assignor="range"),
        Consumer(coordinator, "m2", ["t", "u"], assignor="range"),
        Consumer(coordinator, "m3", ["t", "u"], assignor="uniform"),
    ]
    settle(*members)
    assert [member.partitions for member in members] == [{"t": {n}, "u": {n}} for n in range(3)]
    assert coordinator.describe().assignor_name == "range"


def test_the_interval_between_assignments_may_change_at_run_time() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    one.beat()
    coordinator.shard.configure(GroupConfig(group_consumer_assignment_interval_ms=0))
    two.beat()
    assert coordinator.consumers.assignment_epoch == 3

"""Static members: away for a while, back, replaced."""

from __future__ import annotations

import pytest

from headrace.core.errors import FencedInstance, FencedMemberEpoch, UnknownMember, UnreleasedInstance
from tests.unit.groups.consumer.coordinator import (
    SESSION_MS,
    Consumer,
    ConsumerCoordinator,
    Topics,
    settle,
)
from tests.unit.groups.consumer.test_failover import lasting


def pair(coordinator: ConsumerCoordinator) -> tuple[Consumer, Consumer]:
    one, two = Consumer(coordinator, "m1", instance="i1"), Consumer(coordinator, "m2", instance="i2")
    settle(one, two)
    return one, two


def test_a_member_that_is_away_keeps_its_place() -> None:
    coordinator = ConsumerCoordinator()
    one, two = pair(coordinator)
    before, epoch = two.partitions, coordinator.consumers.epoch
    assert two.leave(-2).member_epoch == -2
    settle(one, rounds=2)
    assert one.count == 2
    back = Consumer(coordinator, "m3", instance="i2")
    back.beat()
    assert back.partitions == before
    assert coordinator.consumers.epoch == epoch, "nobody else has to do anything"
    assert set(coordinator.consumers.members) == {"m1", "m3"}


def test_a_member_that_stays_away_loses_its_place() -> None:
    coordinator = ConsumerCoordinator()
    one, two = pair(coordinator)
    two.leave(-2)
    settle(one, rounds=SESSION_MS // 5_000 + 2)
    assert one.count == 4


def test_a_member_that_leaves_for_good_gives_its_place_up() -> None:
    coordinator = ConsumerCoordinator()
    one, two = pair(coordinator)
    two.leave()
    settle(one)
    assert one.count == 4
    assert coordinator.consumers.static_members == {"i1": "m1"}


def test_an_instance_that_is_in_use_is_refused() -> None:
    coordinator = ConsumerCoordinator()
    pair(coordinator)
    refused = Consumer(coordinator, "m3", instance="i2").refusal()
    assert isinstance(refused, UnreleasedInstance)
    assert str(refused) == (
        "Static member m3 with instance id i2 cannot join the group because the instance id is owned by m2 "
        "member."
    )


def test_a_join_whose_answer_was_lost_may_be_repeated() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1", instance="i1"), Consumer(coordinator, "m2", instance="i2")
    one.beat(lost=True)
    one.beat()
    assert one.count == 4
    settle(one, two)
    assert (one.count, two.count) == (2, 2)


def test_a_member_that_was_fenced_joins_again_as_itself() -> None:
    coordinator = ConsumerCoordinator()
    one, two = pair(coordinator)
    epoch = coordinator.consumers.epoch
    two.epoch += 1
    assert isinstance(two.refusal(), FencedMemberEpoch)
    two.abandon()
    two.beat()
    assert (one.count, two.count) == (2, 2)
    assert coordinator.consumers.epoch == epoch, "nobody else has to do anything"
    assert set(coordinator.consumers.members) == {"m1", "m2"}


def test_a_member_that_begins_anew_has_given_up_what_it_should() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1", instance="i1"), Consumer(coordinator, "m2")
    settle(one)
    two.beat()
    one.beat(slow=True)
    one.abandon()
    one.beat()
    two.beat()
    assert (one.count, two.count) == (2, 2)


def test_a_member_that_was_away_comes_back_as_itself() -> None:
    coordinator = ConsumerCoordinator()
    _, two = pair(coordinator)
    before = two.partitions
    two.leave(-2)
    two.beat()
    assert two.partitions == before
    assert coordinator.failover().consumers.static_members == {"i1": "m1", "i2": "m2"}


def test_the_next_process_wants_only_what_it_says() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(aa=1, b=1))
    old = Consumer(coordinator, "m1", [], regex="a.*", instance="i", assignor="range", rack="r")
    settle(old)
    old.leave(-2)
    new = Consumer(coordinator, "m2", ["b"], instance="i")
    settle(new)
    assert new.partitions == {"b": {0}}
    group = coordinator.consumers
    member = group.members["m2"]
    assert (member.subscribed_regex, member.server_assignor, member.rack_id) == ("", None, None)
    assert (group.resolved, group.regex_counts, group.server_assignors) == ({}, {}, {})
    new.leave(-2)
    newest = Consumer(coordinator, "m3", None, regex="a.*", instance="i")
    settle(newest)
    assert newest.partitions == {"aa": {0}}
    assert lasting(coordinator.failover().consumers) == lasting(group)


def test_the_process_before_is_fenced() -> None:
    coordinator = ConsumerCoordinator()
    one, two = pair(coordinator)
    epoch = two.epoch
    two.leave(-2)
    Consumer(coordinator, "m3", instance="i2").beat()
    two.epoch = epoch
    assert isinstance(two.refusal(), FencedInstance)
    with pytest.raises(FencedInstance):
        two.leave()
    one.instance = "unknown"
    assert isinstance(one.refusal(), UnknownMember)


def test_what_was_to_be_given_up_is_free_once_its_owner_is_away() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1", instance="i1")
    settle(one)
    two = Consumer(coordinator, "m2")
    two.beat()
    one.beat(slow=True)
    one.leave(-2)
    settle(two, rounds=2)
    assert two.count == 2
    back = Consumer(coordinator, "m3", instance="i1")
    settle(back, two)
    assert (back.count, two.count) == (2, 2)


def test_a_replaced_member_is_the_same_after_a_failover() -> None:
    coordinator = ConsumerCoordinator()
    one, two = pair(coordinator)
    two.leave(-2)
    Consumer(coordinator, "m3", instance="i2").beat()
    loaded = coordinator.failover().consumers
    assert loaded.static_members == {"i1": "m1", "i2": "m3"}
    assert set(loaded.targets) == {"m1", "m3"}
    assert one.count == 2

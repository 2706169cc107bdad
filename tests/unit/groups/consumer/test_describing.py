"""What ConsumerGroupDescribe shows."""

from __future__ import annotations

import pytest

from headrace.core.errors import GroupNotFound
from tests.unit.groups.consumer.coordinator import Consumer, ConsumerCoordinator, Topics, settle


def test_a_member_is_shown_with_all_that_it_said() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(t=1, u=1))
    Consumer(coordinator, "m1", ["u", "t"], regex="t", instance="i", rack="r", assignor="range").beat()
    group = coordinator.describe()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.assignor_name == "range"
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m1", "i", "r")
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["t", "u"], "t")
    assert (member.member_epoch, member.member_type) == (2, 1)
    assert coordinator.topics.by_name(member.assignment.topic_partitions) == {"t": {0}, "u": {0}}
    assert {each.topic_name for each in member.target_assignment.topic_partitions} == {"t", "u"}


def test_what_is_to_be_given_up_is_still_shown_with_its_owner() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one)
    two.beat()
    one.beat(slow=True)
    first, second = coordinator.describe().members
    by_name = coordinator.topics.by_name
    assert by_name(first.assignment.topic_partitions) == {"t": {0, 1, 2, 3}}
    assert by_name(first.target_assignment.topic_partitions) == {"t": {0, 1}}
    assert by_name(second.assignment.topic_partitions) == {}
    assert by_name(second.target_assignment.topic_partitions) == {"t": {2, 3}}


def test_topics_that_are_gone_are_left_out() -> None:
    coordinator = ConsumerCoordinator()
    Consumer(coordinator, "m1").beat()
    coordinator.topics.delete("t")
    (member,) = coordinator.describe().members
    assert member.assignment.topic_partitions == []


def test_an_empty_group_has_the_default_assignor() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1", assignor="range")
    one.beat()
    one.leave()
    group = coordinator.describe()
    assert (group.group_state, group.assignor_name, group.members) == ("Empty", "uniform", [])


def test_a_group_that_is_not_there() -> None:
    with pytest.raises(GroupNotFound, match=r"Group nowhere not found\."):
        ConsumerCoordinator().describe("nowhere")

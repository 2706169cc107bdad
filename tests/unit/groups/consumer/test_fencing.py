"""Who is refused, and with which words."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.core.errors import (
    FencedMemberEpoch,
    GroupMaxSizeReached,
    GroupNotFound,
    IllegalGeneration,
    InvalidRequest,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from headrace.groups.group_config import GroupConfig
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tests.unit.groups.classic.coordinator import GROUP
from tests.unit.groups.consumer.coordinator import (
    CLIENT,
    INTERVAL_MS,
    Consumer,
    ConsumerCoordinator,
    Topics,
    settle,
)

JOIN: dict[str, Any] = {
    "group_id": GROUP,
    "member_id": "m",
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"group_id": "  "}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
    ],
)
def test_requests_that_are_wrong_in_themselves(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ConsumerCoordinator().beat(ConsumerGroupHeartbeatRequest(**{**JOIN, **change}))
    assert str(refused.value) == complaint


def test_an_assignor_that_is_not_configured() -> None:
    with pytest.raises(UnsupportedAssignor) as refused:
        ConsumerCoordinator().beat(ConsumerGroupHeartbeatRequest(**JOIN, server_assignor="sticky"))
    assert str(refused.value) == (
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    )


def test_before_version_1_the_broker_makes_the_id() -> None:
    coordinator = ConsumerCoordinator()
    request = ConsumerGroupHeartbeatRequest(**{**JOIN, "member_id": ""})
    answer = coordinator.beat(request, CLIENT._replace(version=0))
    assert answer.member_id
    assert list(coordinator.consumers.members) == [answer.member_id]


def test_a_heartbeat_to_a_group_that_is_not_there() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    one.epoch = 1
    assert isinstance(one.refusal(), GroupNotFound)
    with pytest.raises(GroupNotFound):
        one.leave()


def test_a_member_that_is_not_there() -> None:
    coordinator = ConsumerCoordinator()
    Consumer(coordinator, "m1").beat()
    two = Consumer(coordinator, "m2")
    two.epoch = 1
    assert isinstance(two.refusal(), UnknownMember)
    with pytest.raises(UnknownMember):
        two.leave()


def test_a_member_ahead_of_its_epoch_is_fenced() -> None:
    one = Consumer(ConsumerCoordinator(), "m1")
    one.beat()
    one.epoch += 1
    assert isinstance(one.refusal(), FencedMemberEpoch)


@pytest.mark.parametrize("full", [True, False])
def test_a_lost_answer_is_made_good(full: bool) -> None:
    """The member comes with the epoch before, and with nothing that is not its own; it may say only that."""
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one, two)
    two.leave()
    coordinator.advance(INTERVAL_MS)
    one.told = None
    one.beat(lost=True)
    assert coordinator.consumers.members["m1"].epoch == one.epoch + 1
    one.beat(full=full)
    assert one.count == 4
    assert one.epoch == coordinator.consumers.members["m1"].epoch


def test_an_epoch_before_the_last_is_fenced() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one)
    old = one.epoch
    settle(one, two)
    two.leave()
    settle(one)
    one.epoch = old
    assert isinstance(one.refusal(full=True), FencedMemberEpoch)
    one.abandon()
    one.beat()
    assert one.count == 4, "it may begin anew"


def test_an_epoch_that_is_one_behind_must_not_own_what_is_not_assigned() -> None:
    coordinator = ConsumerCoordinator()
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one, two)
    two.leave()
    coordinator.advance(INTERVAL_MS)
    one.beat(lost=True)
    one.owned = {UUID(int=99): {0}}
    assert isinstance(one.refusal(full=True), FencedMemberEpoch)


def test_a_full_group_takes_nobody_else() -> None:
    coordinator = ConsumerCoordinator(GroupConfig(group_consumer_max_size=1))
    one = Consumer(coordinator, "m1")
    one.beat()
    assert isinstance(Consumer(coordinator, "m2").refusal(), GroupMaxSizeReached)
    one.beat()


# Offsets


def test_commits_go_by_the_member_and_its_epoch() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    one.beat()
    group = coordinator.consumers

    def commit(member_id: str, epoch: int, version: int = 9, *, transactional: bool = False) -> Any:
        return group.validate_offset_commit(member_id, None, epoch, version, transactional=transactional)

    assert commit("m1", 2) is None
    assert commit("", -1, transactional=True) is None
    with pytest.raises(UnknownMember):
        commit("m2", 1)
    with pytest.raises(UnknownMember):
        commit("", -1)
    with pytest.raises(StaleMemberEpoch):
        commit("m1", 3)
    with pytest.raises(UnsupportedVersion):
        commit("m1", 2, version=8)
    one.leave()
    assert commit("", -1) is None, "anybody may, once the group is empty"


def test_a_member_behind_its_epoch_may_commit_what_it_had_at_that_epoch() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(t=4))
    one, two = Consumer(coordinator, "m1"), Consumer(coordinator, "m2")
    settle(one)
    settle(one, two)
    two.leave()
    settle(one)
    group = coordinator.consumers
    (kept, given) = ((0, 1), (2, 3))
    assert group.members["m1"].epoch == 4
    check = group.validate_offset_commit("m1", None, 2, 10, transactional=False)
    assert check is not None
    topic_id = coordinator.topics.ids["t"]
    for number in kept:
        check("t", topic_id, number)
    for number in given:
        with pytest.raises(StaleMemberEpoch, match="older than assignment epoch 4"):
            check("t", topic_id, number)
    with pytest.raises(StaleMemberEpoch, match="not assigned"):
        check("u", UUID(int=7), 0)


def test_fetches_go_by_the_member_and_its_epoch() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    one.beat()
    group = coordinator.consumers
    group.validate_offset_fetch(None, -1)
    group.validate_offset_fetch("m1", 2)
    with pytest.raises(StaleMemberEpoch):
        group.validate_offset_fetch("m1", 0)
    with pytest.raises(UnknownMember):
        group.validate_offset_fetch("m2", 1)
    with pytest.raises(UnknownMember):
        group.validate_offset_fetch(None, 1)
    assert not isinstance(StaleMemberEpoch(), IllegalGeneration)


def test_only_an_empty_group_is_deleted() -> None:
    coordinator = ConsumerCoordinator()
    one = Consumer(coordinator, "m1")
    one.beat()
    group = coordinator.consumers
    with pytest.raises(NonEmptyGroup):
        group.validate_deletion()
    one.leave()
    group.validate_deletion()
    assert group.is_empty()
    coordinator._ask(lambda _: coordinator.shard.delete_groups([GROUP]))
    assert GROUP not in coordinator.shard.groups
    assert GROUP not in coordinator.failover().shard.groups


def test_a_group_knows_its_topics() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(t=1, abc=1))
    one = Consumer(coordinator, "m1", ["t"], regex="a.*")
    one.beat()
    group = coordinator.consumers
    assert group.is_subscribed_to("t")
    assert group.is_subscribed_to("abc")
    assert not group.is_subscribed_to("other")
    one.leave()
    assert not group.is_subscribed_to("t")
    assert not group.is_subscribed_to("abc")

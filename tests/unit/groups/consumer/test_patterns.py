"""Subscriptions by pattern."""

from __future__ import annotations

from headrace.core.errors import InvalidRegularExpression
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.stored.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from tests.unit.groups.classic.coordinator import GROUP
from tests.unit.groups.consumer.coordinator import CLIENT, Consumer, ConsumerCoordinator, Topics, settle


def test_a_pattern_is_resolved_with_the_heartbeat_that_brings_it() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(aa=1, ab=1, b=1))
    one = Consumer(coordinator, "m1", None, regex="a.*")
    one.beat()
    assert one.partitions == {"aa": {0}, "ab": {0}}
    assert coordinator.consumers.resolved["a.*"].topics == {"aa", "ab"}


def test_whole_names_match() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(a=1, ba=1, ab=1))
    one = Consumer(coordinator, "m1", None, regex="a")
    one.beat()
    assert one.partitions == {"a": {0}}


def test_names_and_a_pattern_add_up() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(aa=1, b=1))
    one = Consumer(coordinator, "m1", ["b"], regex="a.*")
    one.beat()
    assert one.partitions == {"aa": {0}, "b": {0}}


def test_a_pattern_that_is_none_is_refused_and_changes_nothing() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(a=1))
    refused = Consumer(coordinator, "m1", None, regex="(a").refusal()
    assert isinstance(refused, InvalidRegularExpression)
    assert str(refused) == "SubscribedTopicRegex `(a` is not a valid regular expression: missing closing )."
    assert GROUP not in coordinator.shard.groups


def test_topics_that_come_later_are_found() -> None:
    topics = Topics(aa=1)
    coordinator = ConsumerCoordinator(topics=topics)
    one = Consumer(coordinator, "m1", None, regex="a.*")
    one.beat()
    one.beat()
    topics.put("ab", 1)
    one.beat()
    assert one.partitions == {"aa": {0}}, "not looked up again within ten seconds"
    settle(one)
    assert one.partitions == {"aa": {0}, "ab": {0}}
    topics.delete("aa")
    settle(one)
    assert one.partitions == {"ab": {0}}


def test_a_clock_that_was_put_back_does_not_hide_new_topics() -> None:
    topics = Topics(aa=1)
    coordinator = ConsumerCoordinator(topics=topics)
    one = Consumer(coordinator, "m1", None, regex="a.*")
    settle(one)
    coordinator.now_ms -= 3_600_000
    topics.put("ab", 1)
    settle(one)
    assert one.partitions == {"aa": {0}, "ab": {0}}


def test_topics_that_do_not_match_change_nothing() -> None:
    topics = Topics(aa=1)
    coordinator = ConsumerCoordinator(topics=topics)
    one = Consumer(coordinator, "m1", None, regex="a.*")
    settle(one)
    size = len(coordinator.log)
    topics.put("b", 1)
    settle(one)
    assert len(coordinator.log) == size


def test_another_pattern_takes_the_place_of_the_first() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(a=1, b=1))
    one = Consumer(coordinator, "m1", None, regex="a")
    settle(one)
    one.regex = "b"
    one.beat(full=True)
    settle(one)
    assert one.partitions == {"b": {0}}
    assert list(coordinator.consumers.resolved) == ["b"]
    one.topics, one.regex = ["a"], ""
    one.beat(full=True)
    settle(one)
    assert one.partitions == {"a": {0}}
    assert coordinator.consumers.resolved == {}


def test_who_joins_again_without_the_pattern_has_given_it_up() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(a=1, b=1))
    one = Consumer(coordinator, "m1", None, regex="a")
    settle(one)
    one.abandon()
    one.topics, one.regex = ["b"], None
    settle(one)
    assert one.partitions == {"b": {0}}
    assert coordinator.consumers.resolved == {}


def test_what_later_heartbeats_leave_out_stays() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(a=1, b=1))
    one = Consumer(coordinator, "m1", ["b"], regex="a", assignor="range")
    settle(one)
    one.topics, one.regex, one.assignor = None, None, None
    one.beat(full=True)
    settle(one)
    assert one.partitions == {"a": {0}, "b": {0}}
    assert coordinator.consumers.members["m1"].server_assignor == "range"


def test_a_shared_pattern_stays_until_the_last_member_leaves() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(a=2))
    one, two = (Consumer(coordinator, name, None, regex="a") for name in ("m1", "m2"))
    settle(one, two)
    assert (one.count, two.count) == (1, 1)
    one.leave()
    assert list(coordinator.consumers.resolved) == ["a"]
    two.leave()
    assert coordinator.consumers.resolved == {}
    assert isinstance(
        next(record.key for record in reversed(coordinator.log) if record.value is None),
        ConsumerGroupRegularExpressionKey,
    )


def test_a_stored_pattern_that_is_not_understood_matches_nothing() -> None:
    """Another broker took it. The group must live on."""
    coordinator = ConsumerCoordinator(topics=Topics(a=1))
    one = Consumer(coordinator, "m1", None, regex="a")
    settle(one)
    group = coordinator.consumers
    group.resolved["(?=a)"] = group.resolved["a"]
    group.regex_counts["(?=a)"] = 1
    coordinator.topics.put("other", 1)
    settle(one)
    assert group.resolved["(?=a)"].topics == frozenset()


def test_patterns_outlive_a_coordinator() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(aa=1, ab=1))
    one = Consumer(coordinator, "m1", None, regex="a.*")
    settle(one)
    loaded = coordinator.failover()
    assert loaded.consumers.resolved == coordinator.consumers.resolved
    one.coordinator = loaded
    one.beat()
    assert one.partitions == {"aa": {0}, "ab": {0}}
    assert loaded.consumers.epoch == 2


def test_topics_that_the_client_may_not_know_of_are_left_out() -> None:
    """Also when the pattern is looked up again: by the rights of whoever's heartbeat brings that about."""
    topics = Topics(aa=1, ab=1)
    coordinator = ConsumerCoordinator(topics=topics)
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m1",
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex="a.*",
        topic_partitions=[],
    )
    hidden = {"ab", "ad"}
    client = CLIENT._replace(sees=lambda name: name not in hidden)
    answer = coordinator.beat(request, client)
    assert answer.assignment is not None
    assert topics.by_name(answer.assignment.topic_partitions) == {"aa": {0}}
    assert coordinator.consumers.resolved["a.*"].topics == {"aa"}
    topics.put("ac", 1)
    topics.put("ad", 1)
    coordinator.advance(60_000 - 20_000)
    again = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m1", member_epoch=answer.member_epoch)
    coordinator.beat(again, client)
    assert coordinator.consumers.resolved["a.*"].topics == {"aa", "ac"}


def test_what_is_remembered_of_a_pattern_knows_no_rights() -> None:
    coordinator = ConsumerCoordinator(topics=Topics(aa=1, ab=1))
    for member, group, sees, found in (
        ("m1", "g1", lambda name: name == "aa", {"aa"}),
        ("m2", "g2", None, {"aa", "ab"}),
        ("m3", "g3", lambda name: name == "ab", {"ab"}),
    ):
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex="a.*",
            topic_partitions=[],
        )
        answer = coordinator.beat(request, CLIENT._replace(sees=sees))
        assert answer.assignment is not None
        assert set(coordinator.topics.by_name(answer.assignment.topic_partitions)) == found

"""A group with settings of its own, beside groups that have none."""

from __future__ import annotations

from headrace.config.group import ConsumerGroupSettings
from headrace.groups.group_config import GroupConfig
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tests.unit.groups.classic.coordinator import GROUP
from tests.unit.groups.consumer.coordinator import (
    INTERVAL_MS,
    SESSION_MS,
    Consumer,
    ConsumerCoordinator,
    settle,
)

OWN = GroupConfig().with_own(ConsumerGroupSettings(60_000, 7_000, 0))


def test_a_member_is_told_its_group_s_interval() -> None:
    coordinator = ConsumerCoordinator(own={GROUP: OWN})
    assert Consumer(coordinator, "m").beat().heartbeat_interval_ms == 7_000
    elsewhere = ConsumerGroupHeartbeatRequest(
        group_id="another",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert coordinator.beat(elsewhere).heartbeat_interval_ms == INTERVAL_MS


def test_a_session_lasts_as_long_as_its_group_says() -> None:
    coordinator = ConsumerCoordinator(own={GROUP: OWN})
    settle(Consumer(coordinator, "m"))
    coordinator.advance(SESSION_MS + 1 - INTERVAL_MS)
    assert "m" in coordinator.consumers.members
    coordinator.advance(60_000 - SESSION_MS)
    assert not coordinator.consumers.members


def test_it_does_after_a_failover_as_well() -> None:
    coordinator = ConsumerCoordinator(own={GROUP: OWN})
    settle(Consumer(coordinator, "m"))
    successor = coordinator.failover()
    successor.advance(SESSION_MS + 1)
    assert "m" in successor.consumers.members
    successor.advance(60_000 - SESSION_MS)
    assert not successor.consumers.members


def test_a_change_holds_from_the_next_heartbeat_on() -> None:
    own: dict[str, GroupConfig] = {}
    coordinator = ConsumerCoordinator(own=own)
    member = Consumer(coordinator, "m")
    assert member.beat().heartbeat_interval_ms == INTERVAL_MS
    own[GROUP] = OWN
    assert member.beat().heartbeat_interval_ms == 7_000
    coordinator.advance(SESSION_MS + 1)
    assert "m" in coordinator.consumers.members
    member.beat()
    del own[GROUP]
    assert member.beat().heartbeat_interval_ms == INTERVAL_MS
    coordinator.advance(SESSION_MS + 1)
    assert not coordinator.consumers.members


def test_assignments_are_as_far_apart_as_the_group_says() -> None:
    """The first member has everything until the next assignment may be computed."""
    for interval_ms, is_computed in ((0, True), (1_000, False)):
        own = GroupConfig().with_own(ConsumerGroupSettings(45_000, 5_000, interval_ms))
        coordinator = ConsumerCoordinator(own={GROUP: own})
        Consumer(coordinator, "a").beat()
        Consumer(coordinator, "b").beat()
        group = coordinator.consumers
        assert (group.assignment_epoch == group.epoch) is is_computed

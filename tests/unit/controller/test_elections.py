from __future__ import annotations

import pytest

from headrace.controller.image import ConfigResource, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp, ElectionType
from headrace.core.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from headrace.core.ids import BrokerId
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord
from tests.unit.controller.cluster import Cluster, row


def change(cluster: Cluster, *, isr: list[int] | None = None, leader: int = -2, **rest: list[int]) -> None:
    topic = cluster.image.topics_by_name["t"]
    record = PartitionChangeRecord(
        partition_id=0,
        topic_id=topic.topic_id,
        isr=isr,
        leader=leader,
        eligible_leader_replicas=rest.get("elr"),
    )
    cluster.apply([record])


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster([0, 1, 2])
    cluster.create("t", assignments=[(0, [0, 1, 2])])
    return cluster


def errors(cluster: Cluster, election: int, *partitions: tuple[str, int]) -> list[type]:
    return [type(o.error) for o in cluster.do(cluster.machine.elect_leaders(election, partitions))]


def test_a_preferred_leader_needs_no_election(cluster: Cluster) -> None:
    assert errors(cluster, ElectionType.PREFERRED, ("t", 0), ("t", 1), ("none", 0)) == [
        ElectionNotNeeded,
        UnknownTopicOrPartition,
        UnknownTopicOrPartition,
    ]


def test_asked_for_all_those_without_need_are_left_out(cluster: Cluster) -> None:
    assert cluster.machine.elect_leaders(ElectionType.PREFERRED, None) == ([], [])
    change(cluster, leader=1)
    outcomes = cluster.do(cluster.machine.elect_leaders(ElectionType.PREFERRED, None))
    assert outcomes == [("t", 0, None, 0)]


def test_the_preferred_leader_gets_a_new_epoch(cluster: Cluster) -> None:
    change(cluster, leader=1)
    assert errors(cluster, ElectionType.PREFERRED, ("t", 0)) == [type(None)]
    state = cluster.image.topics_by_name["t"].state(0)
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (0, 2, 2)
    assert state.isr == (0, 1, 2)


def test_a_preferred_leader_must_be_alive_and_in_sync(cluster: Cluster) -> None:
    change(cluster, leader=1, isr=[1, 2])
    assert errors(cluster, ElectionType.PREFERRED, ("t", 0)) == [PreferredLeaderNotAvailable]
    change(cluster, isr=[0, 1, 2])
    cluster.fence(0)
    assert errors(cluster, ElectionType.PREFERRED, ("t", 0)) == [PreferredLeaderNotAvailable]


def test_an_unclean_election_is_for_the_leaderless(cluster: Cluster) -> None:
    assert errors(cluster, ElectionType.UNCLEAN, ("t", 0)) == [ElectionNotNeeded]
    change(cluster, leader=-1, isr=[2])
    cluster.fence(2)
    assert errors(cluster, ElectionType.UNCLEAN, ("t", 0)) == [type(None)]
    state = cluster.image.topics_by_name["t"].state(0)
    assert (state.leader, state.isr, state.exceptional.recovering) == (0, (0,), True)


def test_an_eligible_leader_is_taken_before_an_unclean_one(cluster: Cluster) -> None:
    change(cluster, leader=-1, isr=[], elr=[2])
    assert errors(cluster, ElectionType.UNCLEAN, ("t", 0)) == [type(None)]
    state = cluster.image.topics_by_name["t"].state(0)
    assert (state.leader, state.isr, state.exceptional.recovering) == (2, (2,), False)
    assert state.exceptional.elr == ()


def test_without_any_live_replica_nobody_is_elected(cluster: Cluster) -> None:
    change(cluster, leader=-1)
    for broker_id in (0, 1, 2):
        cluster.fence(broker_id)
    assert errors(cluster, ElectionType.UNCLEAN, ("t", 0)) == [EligibleLeadersNotAvailable]


def test_an_unknown_type_of_election(cluster: Cluster) -> None:
    with pytest.raises(InvalidRequest):
        cluster.machine.elect_leaders(7, None)


def test_a_restarted_broker_leads_only_in_new_epochs() -> None:
    cluster = Cluster([0, 1])
    cluster.create("t", assignments=[(0, [0, 1]), (1, [1, 0]), (2, [0, 1])])
    assert cluster.do(cluster.machine.renew_leaderships(BrokerId(0))) == 2
    topic = cluster.image.topics_by_name["t"]
    assert list(topic.leader_epochs) == [1, 0, 1]
    assert list(topic.leaders) == [0, 1, 0]


def test_a_restarted_broker_takes_the_leaderless_that_it_is_in_sync_with() -> None:
    cluster = Cluster([0, 1])
    cluster.create("t", assignments=[(0, [0, 1]), (1, [1, 0]), (2, [1, 0])])
    topic = cluster.image.topics_by_name["t"]
    leaderless = [
        PartitionChangeRecord(partition_id=1, topic_id=topic.topic_id, leader=-1),
        PartitionChangeRecord(partition_id=2, topic_id=topic.topic_id, leader=-1, isr=[1]),
    ]
    cluster.apply(leaderless)
    cluster.do(cluster.machine.renew_leaderships(BrokerId(0)))
    assert list(topic.leaders) == [0, 0, -1]
    assert list(topic.leader_epochs) == [1, 2, 1]


def test_a_preferred_leader_that_is_only_eligible_has_to_wait() -> None:
    cluster = Cluster([0, 1])
    cluster.create("t", assignments=[(0, [0, 1])], configs=[("min.insync.replicas", "2")])
    cluster.fence(0)
    cluster.fence(0, fenced=False)
    assert row(cluster) == (1, (1,), (0,))
    assert errors(cluster, ElectionType.PREFERRED, ("t", 0)) == [PreferredLeaderNotAvailable]


def test_an_unclean_election_forgets_who_was_eligible() -> None:
    cluster = Cluster([0, 1, 2])
    cluster.create("t", assignments=[(0, [0, 1, 2])], configs=[("min.insync.replicas", "2")])
    cluster.fence(2)
    cluster.do(cluster.machine.fence_brokers([0, 1]))
    cluster.fence(2, fenced=False)
    assert row(cluster) == (-1, (), (0, 1))
    assert errors(cluster, ElectionType.UNCLEAN, ("t", 0)) == [type(None)]
    assert row(cluster) == (2, (2,), ())
    assert cluster.image.topics_by_name["t"].exceptional(0).recovering


def bounced(partitions: int) -> Cluster:
    """Broker 0 was away, and is in sync again with what it should lead."""
    cluster = Cluster([0, 1])
    cluster.create("t", assignments=[(i, [0, 1]) for i in range(partitions)])
    cluster.fence(0)
    cluster.fence(0, fenced=False)
    topic = cluster.image.topics_by_name["t"]
    back = [
        PartitionChangeRecord(partition_id=i, topic_id=topic.topic_id, isr=[1, 0])
        for i in range(partitions - 1)
    ]
    cluster.apply(back)
    return cluster


def test_leaders_are_balanced_a_few_at_a_time() -> None:
    cluster = bounced(6)
    leaders = cluster.image.topics_by_name["t"].leaders
    assert cluster.do(cluster.machine.balance_leaders(most=3)) == (3, True)
    assert list(leaders) == [0, 0, 0, 1, 1, 1]
    assert cluster.do(cluster.machine.balance_leaders(most=3)) == (2, False)
    assert list(leaders) == [0, 0, 0, 0, 0, 1], "the last one's preferred leader is not in sync"
    assert cluster.machine.balance_leaders() == ([], (0, False))


def test_no_leadership_goes_to_a_broker_that_stops() -> None:
    cluster = bounced(3)
    cluster.do(cluster.machine.begin_shutdown(BrokerId(0), cluster.image.brokers[0].epoch))
    assert cluster.machine.balance_leaders().response == (0, False)


def test_allowing_unclean_elections_gives_the_leaderless_a_leader() -> None:
    cluster = Cluster([0, 1])
    cluster.create("t", assignments=[(0, [0, 1])])
    cluster.fence(1)
    cluster.fence(1, fenced=False)
    cluster.fence(0)
    assert cluster.machine.elect_leaderless() == ([], 0)
    allow = [ConfigChange(ConfigOp.SET, "unclean.leader.election.enable", "true")]
    resource = ConfigResource(ResourceType.TOPIC, "t")
    cluster.do(cluster.machine.incremental_alter_configs([(resource, allow)]))
    assert cluster.do(cluster.machine.elect_leaderless()) == 1
    assert row(cluster) == (1, (1,), ())

from __future__ import annotations

import pytest

from headrace.controller.operations import ElectionType
from headrace.core.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from headrace.core.ids import BrokerId
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord
from tests.unit.controller.cluster import Cluster


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
    assert outcomes == [("t", 0, None)]


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

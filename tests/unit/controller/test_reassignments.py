from __future__ import annotations

from typing import Any

import pytest

from headrace.controller.operations import IsrChange, IsrMember, Reassignment
from headrace.core.errors import (
    HeadraceError,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from headrace.core.ids import BrokerId
from tests.unit.controller.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(range(6))
    cluster.create("t", assignments=[(0, [0, 1, 2])], configs=[("min.insync.replicas", "2")])
    return cluster


def move(
    cluster: Cluster, replicas: list[int] | None, partition: int = 0, **rest: Any
) -> HeadraceError | None:
    asked = [Reassignment("t", partition, replicas)]
    (outcome,) = cluster.do(cluster.machine.reassign_partitions(asked, **rest))
    return outcome.error


def in_sync(cluster: Cluster, *isr: int) -> None:
    topic = cluster.image.topics_by_name["t"]
    leader = topic.leader(0)
    members = [IsrMember(each, cluster.image.brokers[each].epoch) for each in isr]
    change = IsrChange(topic.topic_id, 0, topic.leader_epoch(0), topic.partition_epoch(0), members)
    epoch = cluster.image.brokers[leader].epoch
    (outcome,) = cluster.do(cluster.machine.alter_partitions(BrokerId(leader), epoch, [change]))
    assert outcome.isr == cluster.image.topics_by_name["t"].isr(0)


def place(cluster: Cluster) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    state = cluster.image.topics_by_name["t"].state(0)
    return state.replicas, state.exceptional.adding, state.exceptional.removing


def test_it_starts_with_the_replicas_of_both_ends(cluster: Cluster) -> None:
    assert move(cluster, [3, 4, 0]) is None
    assert place(cluster) == ((3, 4, 0, 1, 2), (3, 4), (1, 2))
    topic = cluster.image.topics_by_name["t"]
    assert topic.isr(0) == (0, 1, 2)
    assert (topic.leader(0), topic.leader_epoch(0), topic.partition_epoch(0)) == (0, 0, 1)
    assert topic.directory_of(0, 3) == cluster.image.brokers[3].directories[0]
    assert topic.directory_of(0, 0) == cluster.image.brokers[0].directories[0]
    assert cluster.machine.list_reassignments(None) == [("t", 0, (3, 4, 0, 1, 2), (3, 4), (1, 2))]


def test_it_ends_only_when_every_new_replica_is_in_sync(cluster: Cluster) -> None:
    move(cluster, [3, 4, 0])
    in_sync(cluster, 0, 1, 2, 3)
    assert place(cluster)[1:] == ((3, 4), (1, 2))
    in_sync(cluster, 0, 1, 2, 3, 4)
    assert place(cluster) == ((3, 4, 0), (), ())
    topic = cluster.image.topics_by_name["t"]
    assert (topic.leader(0), topic.isr(0)) == (0, (0, 3, 4))
    assert topic.leader_epoch(0) == 1, "replicas were taken away: a new epoch, though the leader stays"
    assert cluster.machine.list_reassignments(None) == []


def test_a_leader_that_goes_is_followed_by_one_that_stays(cluster: Cluster) -> None:
    move(cluster, [3, 4, 5])
    in_sync(cluster, 0, 1, 2, 3, 4, 5)
    topic = cluster.image.topics_by_name["t"]
    assert (topic.leader(0), topic.isr(0), topic.replicas(0)) == (3, (3, 4, 5), (3, 4, 5))


def test_it_does_not_end_without_somebody_to_lead(cluster: Cluster) -> None:
    move(cluster, [3])
    in_sync(cluster, 0, 1, 2, 3)
    assert place(cluster) == ((3,), (), ())
    waiting = Cluster(range(4))
    waiting.create("t", assignments=[(0, [0, 1])])
    move(waiting, [1])
    assert place(waiting) == ((1,), (), ())


def test_a_stopping_target_does_not_take_over(cluster: Cluster) -> None:
    epoch = cluster.image.brokers[2].epoch
    move(cluster, [2, 3])
    cluster.fence(3)
    cluster.do(cluster.machine.begin_shutdown(BrokerId(2), epoch))
    assert place(cluster)[2] == (0, 1)
    assert cluster.image.topics_by_name["t"].leader(0) == 0


def test_another_order_is_done_at_once_and_moves_nobody(cluster: Cluster) -> None:
    assert move(cluster, [2, 0, 1]) is None
    assert place(cluster) == ((2, 0, 1), (), ())
    topic = cluster.image.topics_by_name["t"]
    assert (topic.leader(0), topic.leader_epoch(0)) == (0, 0)
    assert topic.directories(0) == tuple(cluster.image.brokers[each].directories[0] for each in (2, 0, 1))


def test_fewer_replicas_wait_for_those_that_stay(cluster: Cluster) -> None:
    cluster.fence(1)
    assert move(cluster, [0, 1]) is None
    assert place(cluster) == ((0, 1, 2), (), (2,))
    cluster.fence(1, fenced=False)
    in_sync(cluster, 0, 2, 1)
    assert place(cluster) == ((0, 1), (), ())


def test_a_new_target_replaces_the_old_one(cluster: Cluster) -> None:
    move(cluster, [0, 1, 3])
    in_sync(cluster, 0, 1, 2)
    assert move(cluster, [0, 1, 4]) is None
    assert place(cluster) == ((0, 1, 4, 2), (4,), (2,)), "3 had nothing yet"
    in_sync(cluster, 0, 1, 2)
    in_sync(cluster, 0, 1, 4)
    assert place(cluster) == ((0, 1, 4), (), ())


def test_a_new_target_keeps_what_is_in_sync_until_the_end(cluster: Cluster) -> None:
    move(cluster, [3, 4, 5])
    in_sync(cluster, 0, 1, 2, 3)
    cluster.do(cluster.machine.fence_brokers([0, 1, 2]))
    assert cluster.image.topics_by_name["t"].isr(0) == (3,)
    assert move(cluster, [0, 1, 4]) is None
    assert place(cluster) == ((0, 1, 4, 2, 3), (4,), (2, 3))
    assert cluster.image.topics_by_name["t"].leader(0) == 3


def test_cancelling_takes_the_new_replicas_away(cluster: Cluster) -> None:
    move(cluster, [3, 4, 5])
    in_sync(cluster, 0, 1, 2, 3)
    assert move(cluster, None) is None
    assert place(cluster) == ((0, 1, 2), (), ())
    topic = cluster.image.topics_by_name["t"]
    assert (topic.isr(0), topic.leader(0), topic.leader_epoch(0)) == ((0, 1, 2), 0, 1)
    assert len(topic.directories(0)) == 3


def test_cancelling_is_refused_where_only_the_new_replicas_can_lead(cluster: Cluster) -> None:
    move(cluster, [3, 4, 5])
    in_sync(cluster, 0, 1, 2, 3)
    cluster.do(cluster.machine.fence_brokers([0, 1, 2]))
    assert isinstance(move(cluster, None), InvalidReplicaAssignment)
    assert place(cluster)[1] == (3, 4, 5)


def test_cancelling_keeps_as_many_copies_as_the_minimum(cluster: Cluster) -> None:
    """What is acknowledged is on 0 and 3. Without 3 it would be on one host, which may be dead already."""
    move(cluster, [3, 4, 5])
    in_sync(cluster, 0, 3)
    refusal = move(cluster, None)
    assert isinstance(refusal, InvalidReplicaAssignment)
    assert "only [0] hold everything, and min.insync.replicas is 2" in str(refusal)
    assert place(cluster)[1] == (3, 4, 5)
    in_sync(cluster, 0, 1, 3)
    assert move(cluster, None) is None
    assert place(cluster) == ((0, 1, 2), (), ())


def test_cancelling_takes_nothing_from_what_is_below_the_minimum_already(cluster: Cluster) -> None:
    move(cluster, [3, 4, 5])
    cluster.fence(1)
    cluster.fence(2)
    assert cluster.image.topics_by_name["t"].isr(0) == (0,)
    assert move(cluster, None) is None
    assert place(cluster) == ((0, 1, 2), (), ())


def test_cancelling_moves_a_leadership_back(cluster: Cluster) -> None:
    move(cluster, [3, 4, 5])
    in_sync(cluster, 0, 1, 2, 3)
    cluster.fence(0)
    cluster.do(cluster.machine.elect_leaders(0, [("t", 0)]))
    assert cluster.image.topics_by_name["t"].leader(0) == 3
    assert move(cluster, None) is None
    topic = cluster.image.topics_by_name["t"]
    assert (topic.leader(0), topic.isr(0), topic.replicas(0)) == (1, (1, 2), (0, 1, 2))


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        (None, NoReassignmentInProgress),
        ([], InvalidReplicaAssignment),
        ([1, 1], InvalidReplicaAssignment),
        ([1, 77], InvalidReplicaAssignment),
        ([-1], InvalidReplicaAssignment),
    ],
)
def test_what_cannot_be(cluster: Cluster, replicas: list[int] | None, error: type[HeadraceError]) -> None:
    assert type(move(cluster, replicas)) is error
    assert place(cluster) == ((0, 1, 2), (), ())


def test_unknown_partitions_and_partitions_listed_twice(cluster: Cluster) -> None:
    assert type(move(cluster, [1], partition=8)) is UnknownTopicOrPartition
    asked = [Reassignment("t", 0, [1]), Reassignment("t", 0, [2]), Reassignment("none", 0, [1])]
    result = cluster.machine.reassign_partitions(asked)
    assert result.groups == []
    assert [type(each.error) for each in result.response] == [
        InvalidRequest,
        InvalidRequest,
        UnknownTopicOrPartition,
    ]


def test_a_change_of_the_replication_factor_can_be_forbidden(cluster: Cluster) -> None:
    error = move(cluster, [0, 1, 2, 3], allow_factor_change=False)
    assert type(error) is InvalidReplicationFactor
    assert move(cluster, [0, 1, 3], allow_factor_change=False) is None


def test_listing_by_partition(cluster: Cluster) -> None:
    move(cluster, [0, 1, 3])
    machine = cluster.machine
    assert [each.partition for each in machine.list_reassignments([("t", [0, 5]), ("none", [0])])] == [0]
    assert machine.list_reassignments([("t", [1])]) == []


def test_the_redundancy_is_never_below_its_start(cluster: Cluster) -> None:
    """Whatever fails on the way: every replica of the beginning stays until all of the target are in sync."""
    move(cluster, [3, 4, 5])
    for failing in (3, 4):
        in_sync(cluster, 0, 1, 2, failing)
        cluster.fence(failing)
        cluster.fence(failing, fenced=False)
    assert set(place(cluster)[0]) >= {0, 1, 2}
    assert cluster.image.topics_by_name["t"].isr(0) == (0, 1, 2)

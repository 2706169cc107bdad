from __future__ import annotations

from uuid import UUID

import pytest

from headrace.controller.operations import IsrChange, IsrMember
from headrace.core.errors import (
    IneligibleReplica,
    NotLeader,
    StaleBrokerEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.core.ids import BrokerEpoch, BrokerId
from tests.unit.controller.cluster import Cluster, description, row

FIRST, SECOND = UUID(int=100), UUID(int=101)


@pytest.fixture
def cluster() -> Cluster:
    """Broker 0 has two directories, with one partition in each and one that it has not told."""
    cluster = Cluster([1])
    described = description(0, directories=2)
    cluster.do(cluster.machine.register_broker(described, BrokerEpoch(5), fenced=False))
    assert described.directories == (FIRST, SECOND)
    topic_id = cluster.create("t", assignments=[(0, [0, 1]), (1, [0, 1]), (2, [0, 1])])
    cluster.create("elsewhere", assignments=[(0, [1])])
    told = {FIRST: [(topic_id, 0)], SECOND: [(topic_id, 1)]}
    cluster.do(cluster.machine.assign_directories(BrokerId(0), BrokerEpoch(5), told))
    return cluster


def test_a_broker_tells_where_its_replicas_are(cluster: Cluster) -> None:
    topic = cluster.image.topics_by_name["t"]
    assert [topic.directory_of(i, 0) for i in range(3)] == [FIRST, SECOND, UUID(int=0)]
    assert topic.directory_of(0, 1) == cluster.image.brokers[1].directories[0]
    assert [row(cluster, i)[:2] for i in range(2)] == [(0, (0, 1)), (0, (0, 1))]
    again = {FIRST: [(topic.topic_id, 0)]}
    assert cluster.machine.assign_directories(BrokerId(0), BrokerEpoch(5), again).groups == []


def test_what_cannot_be_assigned(cluster: Cluster) -> None:
    topic_id = cluster.image.topics_by_name["t"].topic_id
    elsewhere = cluster.image.topics_by_name["elsewhere"].topic_id
    wrong = {FIRST: [(UUID(int=9), 0), (topic_id, 9), (elsewhere, 0)]}
    result = cluster.machine.assign_directories(BrokerId(0), BrokerEpoch(5), wrong)
    assert [type(each.error) for each in result.response] == [
        UnknownTopicId,
        UnknownTopicOrPartition,
        NotLeader,
    ]
    with pytest.raises(StaleBrokerEpoch):
        cluster.machine.assign_directories(BrokerId(0), BrokerEpoch(4), wrong)


def test_a_dead_directory_costs_its_replicas_only(cluster: Cluster) -> None:
    assert cluster.do(cluster.machine.directories_offline(BrokerId(0), BrokerEpoch(5), [SECOND])) == 1
    assert [row(cluster, i)[:2] for i in range(3)] == [(0, (0, 1)), (1, (1,)), (0, (0, 1))]
    assert cluster.image.brokers[0].directories == (FIRST,)
    assert cluster.image.brokers[0].active
    again = cluster.machine.directories_offline(BrokerId(0), BrokerEpoch(5), [SECOND])
    assert again == ([], 0)


def test_a_replica_on_a_dead_directory_neither_leads_nor_joins(cluster: Cluster) -> None:
    cluster.do(cluster.machine.directories_offline(BrokerId(0), BrokerEpoch(5), [SECOND]))
    topic = cluster.image.topics_by_name["t"]
    change = IsrChange(
        topic.topic_id,
        1,
        topic.leader_epoch(1),
        topic.partition_epoch(1),
        [IsrMember(1, cluster.image.brokers[1].epoch), IsrMember(0, 5)],
    )
    epoch = cluster.image.brokers[1].epoch
    (outcome,) = cluster.machine.alter_partitions(BrokerId(1), epoch, [change]).response
    assert isinstance(outcome.error, IneligibleReplica)
    cluster.fence(1)
    assert row(cluster, 1) == (-1, (), (1,))


def test_with_the_last_directory_the_broker_is_fenced(cluster: Cluster) -> None:
    cluster.do(cluster.machine.directories_offline(BrokerId(0), BrokerEpoch(5), [SECOND, FIRST]))
    assert cluster.image.brokers[0].fenced
    assert [row(cluster, i)[:2] for i in range(3)] == [(1, (1,))] * 3


def test_a_replica_told_to_be_in_an_unknown_directory_has_failed(cluster: Cluster) -> None:
    topic = cluster.image.topics_by_name["t"]
    told = {UUID(int=55): [(topic.topic_id, 2)]}
    cluster.do(cluster.machine.assign_directories(BrokerId(0), BrokerEpoch(5), told))
    assert row(cluster, 2)[:2] == (1, (1,))
    assert topic.directory_of(2, 0) == UUID(int=55)


def test_a_replica_that_is_lost_is_not_eligible_any_more() -> None:
    """It begins anew with nothing, in a directory that works: whoever counted on it would lose everything."""
    cluster = Cluster([0, 1, 2])
    topic_id = cluster.create("t", assignments=[(0, [0, 1, 2])], configs=[("min.insync.replicas", "2")])
    cluster.fence(2)
    nowhere, works = UUID(int=1), cluster.image.brokers[1].directories[0]
    cluster.do(cluster.machine.assign_directories(BrokerId(1), BrokerEpoch(11), {nowhere: [(topic_id, 0)]}))
    assert row(cluster) == (0, (0,), ())
    cluster.do(cluster.machine.assign_directories(BrokerId(1), BrokerEpoch(11), {works: [(topic_id, 0)]}))
    cluster.fence(0)
    assert row(cluster) == (-1, (), (0,))

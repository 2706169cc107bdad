"""The state of a cluster, counted from what its brokers answer."""

from __future__ import annotations

import asyncio
from uuid import UUID

from headrace.client import health
from headrace.client.cluster import Cluster
from headrace.client.health import BrokerView, ClusterView, Observation
from headrace.client.log_dirs import ReplicaFiles
from headrace.client.reassignments import Reassignment
from headrace.client.topics import PartitionState, TopicState
from headrace.core.ids import TopicPartition
from tests.unit.client.scripted_cluster import ScriptedCluster

BROKERS = [BrokerView(number, "h", 9090 + number, None, True) for number in (1, 2, 3)]


def seen(*partitions: tuple[int, list[int], list[int]], brokers: list[BrokerView] = BROKERS) -> Observation:
    states = [
        PartitionState(index, leader, 0, replicas, isr, [])
        for index, (leader, replicas, isr) in enumerate(partitions)
    ]
    topics = [TopicState("t", UUID(int=1), False, states)]
    return Observation(ClusterView("id", 1, brokers), topics, {"t": 2}, {}, {})


def p(index: int) -> TopicPartition:
    return TopicPartition("t", index)


def test_all_is_well() -> None:
    judged = health.judge(seen((1, [1, 2, 3], [1, 2, 3]), (2, [2, 3, 1], [3, 2, 1])))
    assert judged.verdict == "healthy"
    assert judged.partitions == 2
    assert judged.leaders == {1: 1, 2: 1, 3: 0}
    assert judged.replicas == {1: 2, 2: 2, 3: 2}
    assert judged.max_lag == 0
    assert not judged.not_preferred


def test_each_state_is_counted_where_it_belongs() -> None:
    judged = health.judge(
        seen(
            (2, [1, 2, 3], [2, 3]),  # one missing, led by the second
            (3, [1, 2, 3], [3]),  # refuses acks=all
            (-1, [1, 2, 3], [1]),  # gone
        )
    )
    assert judged.under_replicated == [p(0), p(1), p(2)]
    assert judged.at_min_isr == [p(0)]
    assert judged.under_min_isr == [p(1)]
    assert judged.offline == [p(2)]
    assert judged.not_preferred == [p(0), p(1)]
    assert judged.verdict == "offline"


def test_the_verdict_is_the_worst_that_holds() -> None:
    assert health.judge(seen((3, [1, 2, 3], [3]))).verdict == "unwritable"
    assert health.judge(seen((1, [1, 2, 3], [1, 2]))).verdict == "degraded"
    fenced = [*BROKERS[:2], BROKERS[2]._replace(alive=False)]
    judged = health.judge(seen(brokers=fenced))
    assert (judged.verdict, judged.dead) == ("degraded", [3])


def test_a_partition_with_fewer_replicas_than_the_minimum_needs_all_of_them() -> None:
    """As the brokers see it: min.insync.replicas=2 does not make a topic of one replica unwritable."""
    judged = health.judge(seen((1, [1], [1]), (2, [2], [2])))
    assert judged.under_min_isr == []
    assert judged.at_min_isr == []
    assert judged.verdict == "healthy"


def test_a_leader_whose_log_cannot_be_served_is_none() -> None:
    """A lone broker leads what its missing disk holds: nobody else could."""
    observed = seen((1, [1], [1]), (1, [1], [1]))
    (topic,) = observed.topics
    topic.partitions[1] = topic.partitions[1]._replace(offline=[1])
    judged = health.judge(observed)
    assert judged.offline == [p(1)]
    assert judged.leaders[1] == 1
    assert judged.verdict == "offline"


def test_a_replica_on_its_way_is_not_missed() -> None:
    observed = seen((1, [1, 2, 3], [1, 2]))
    moving = {p(0): Reassignment([1, 2, 3], [3], [])}
    judged = health.judge(observed._replace(moving=moving, files={(p(0), 3): ReplicaFiles(10, 500)}))
    assert not judged.under_replicated
    assert judged.lagging == {(p(0), 3): 500}
    assert judged.max_lag == 500
    assert judged.verdict == "healthy"


def test_a_lag_that_nobody_can_tell_is_not_none_at_all() -> None:
    assert health.judge(seen((1, [1, 2, 3], [1, 2]))).max_lag is None


def test_a_broker_that_only_the_replica_lists_know_is_down() -> None:
    judged = health.judge(seen((1, [1, 9], [1])))
    assert judged.dead == [9]
    assert judged.replicas[9] == 1


def test_a_look_at_a_cluster_with_a_broker_down() -> None:
    async def work() -> None:
        script = ScriptedCluster({1: "a", 2: "b", 3: None}, {("t", 0): [1, 2, 3], ("t", 1): [3, 1, 2]})
        script.fail(3)
        script.isr["t", 0] = [1]
        async with script, Cluster(script.address) as cluster:
            judged = health.judge(await health.gather(cluster))
        assert judged.view.cluster_id == "scripted"
        assert judged.dead == [3]
        assert [broker.rack for broker in judged.view.brokers] == ["a", "b", None]
        assert judged.under_replicated == [p(0), p(1)]
        assert judged.under_min_isr == [p(0)]
        assert judged.lagging == {(p(0), 2): 7, (p(0), 3): None, (p(1), 3): None}

    asyncio.run(work())

"""Which broker is restarted next, and what speaks against it."""

from __future__ import annotations

from uuid import UUID

from headrace.client import health, rolling
from headrace.client.broker_health import BrokerHealth
from headrace.client.health import BrokerView, ClusterView, Observation
from headrace.client.reassignments import Reassignment
from headrace.client.topics import PartitionState, TopicState
from headrace.config.health import STARTED_MS
from headrace.core.ids import TopicPartition

WELL = BrokerHealth(True, {"zookeeper.answers": "true", STARTED_MS: "1000"})
CUT_OFF = BrokerHealth(True, {"zookeeper.answers": "false", "zookeeper.servers": "zk:2181"})
PLACE = TopicPartition("t", 0)


def observed(
    *partitions: PartitionState, brokers: dict[int, BrokerHealth] | None = None, min_isr: int = 2
) -> Observation:
    told = brokers or dict.fromkeys((1, 2, 3), WELL)
    views = [BrokerView(number, "h", 9092, None, True) for number in (1, 2, 3)]
    topics = [TopicState("t", UUID(int=1), False, list(partitions))]
    return Observation(ClusterView("id", 1, views), topics, {"t": min_isr}, {}, {}, told)


def doubt(seen: Observation) -> str:
    return rolling.doubt(health.judge(seen))


def replicas(*isr: int, of: tuple[int, ...] = (1, 2, 3)) -> PartitionState:
    return PartitionState(0, isr[0] if isr else -1, 0, of, isr, [])


def test_a_whole_cluster_leaves_no_doubt() -> None:
    assert doubt(observed(replicas(1, 2, 3))) == ""


def test_each_thing_that_makes_a_restart_dangerous_is_a_doubt() -> None:
    assert doubt(observed(replicas(1, 2))) == "1 under-replicated: t-0"
    assert doubt(observed(replicas(1))).startswith("1 below min.insync.replicas")
    assert doubt(observed(replicas())).startswith("1 without a leader")
    frozen = observed(replicas(1, 2, 3), brokers=dict.fromkeys((1, 2, 3), CUT_OFF))
    assert doubt(frozen).startswith("no broker reaches ZooKeeper")
    partly = observed(replicas(1, 2, 3), brokers={1: WELL, 2: CUT_OFF, 3: WELL})
    assert doubt(partly) == "1 without ZooKeeper, while others reach it: broker 2"
    silent = observed(replicas(1, 2, 3), brokers={1: WELL, 2: BrokerHealth(False), 3: WELL})
    assert doubt(silent).startswith("1 registered, but not answering: broker 2")
    moving = observed(replicas(1, 2, 3))._replace(moving={PLACE: Reassignment((1, 2, 3), (3,), ())})
    assert doubt(moving) == "1 being moved: t-0 to 3"


def test_what_a_restart_makes_no_worse_is_none() -> None:
    thin = observed(replicas(1, 2, 3))._replace(factors={"t": 5})
    other_leader = observed(PartitionState(0, 2, 0, (1, 2, 3), (1, 2, 3), []))
    assert doubt(thin) == doubt(other_leader) == ""


def test_many_partitions_are_not_all_named() -> None:
    many = [PartitionState(index, 1, 0, (1, 2, 3), (1, 2), []) for index in range(7)]
    assert doubt(observed(*many)).endswith("t-3, t-4 and 2 more")


def test_partitions_that_would_stop_producers_meanwhile() -> None:
    assert rolling.pausing(observed(replicas(1, 2, 3)), 1) == []
    assert rolling.pausing(observed(replicas(1, 2, 3), min_isr=3), 1) == [PLACE]
    alone = observed(replicas(2, of=(2,)))
    assert rolling.pausing(alone, 2) == [PLACE]
    assert rolling.pausing(alone, 1) == []
    assert "broker 2" in rolling.pause_doubt([PLACE], 2)
    assert rolling.pause_doubt([], 2) == ""


def test_the_controller_is_the_last() -> None:
    assert [rolling.next_broker(left, 1) for left in ([1, 2, 3], [1, 3], [1])] == [2, 3, 1]
    assert rolling.next_broker([3, 2], -1) == 2


def test_another_process_is_told_by_its_start_and_an_older_version_by_its_age() -> None:
    def started(at: str) -> BrokerHealth:
        return BrokerHealth(True, {STARTED_MS: at, "uptime.seconds": "9"})

    def aged(seconds: str) -> BrokerHealth:
        return BrokerHealth(True, {"uptime.seconds": seconds})

    assert rolling.is_restarted(started("1"), started("2"), 1)
    assert not rolling.is_restarted(started("1"), started("1"), 100)
    assert rolling.is_restarted(aged("5000"), started("2"), 10)
    assert not rolling.is_restarted(aged("5000"), aged("5010"), 10.5)
    assert rolling.is_restarted(aged("5000"), aged("2"), 10.5)
    assert not rolling.is_restarted(started("1"), BrokerHealth(False), 10)
    assert rolling.tells_its_age(aged("1"))
    assert not rolling.tells_its_age(BrokerHealth(True))

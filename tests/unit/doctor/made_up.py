"""A cluster of three brokers with which all is well, and ways to change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from headrace.client import health
from headrace.client.broker_health import BrokerHealth
from headrace.client.health import BrokerView, ClusterView, Health, Observation
from headrace.client.log_dirs import LogDirectory, ReplicaFiles
from headrace.client.topics import PartitionState, TopicState
from headrace.config.health import (
    BUILD,
    CLOCK_MS,
    DESCRIPTORS_LIMIT,
    DESCRIPTORS_OPEN,
    STARTED_MS,
    VERSION,
    growth_of,
)
from headrace.core.ids import TopicPartition
from headrace.doctor.facts import Clock, Ends, Facts, GroupFacts, GroupLook, Setting

NOW_MS = 1_760_000_000_000
DAY_MS = 86_400_000
GIGABYTE = 10**9
FIGURES = {
    "zookeeper.answers": "true",
    "zookeeper.servers": "zk1:2181,zk2:2181,zk3:2181/orders",
    "uptime.seconds": "100000",
    "scrub.last.pass.ms": "1759999000000",
    "scrub.pass.percent": "100",
    "log.damage.found": "0",
    VERSION: "0.1.0",
    BUILD: "compiled",
    STARTED_MS: "1759900000000",
    CLOCK_MS: str(NOW_MS),
    DESCRIPTORS_OPEN: "500",
    DESCRIPTORS_LIMIT: "20000",
    growth_of("/data"): str(GIGABYTE),
}
TOPIC_SETTINGS = {
    "cleanup.policy": Setting("delete", False),
    "min.insync.replicas": Setting("2", True),
    "retention.bytes": Setting("-1", False),
    "retention.ms": Setting(str(7 * DAY_MS), False),
    "unclean.leader.election.enable": Setting("false", False),
}
BROKER_SETTINGS = {
    "auto.create.topics.enable": Setting("false", True),
    "unclean.leader.election.enable": Setting("false", False),
    "num.io.threads": Setting("8", False),
}
ORDERS = TopicPartition("orders", 0)


def partition(
    index: int, replicas: list[int], isr: list[int] | None = None, leader: int = -2
) -> PartitionState:
    """Led by its first replica, unless said otherwise."""
    first = replicas[0] if leader == -2 else leader
    return PartitionState(index, first, 0, replicas, replicas if isr is None else isr, [])


def topic(name: str, *partitions: PartitionState) -> TopicState:
    return TopicState(name, UUID(int=1), name.startswith("__"), list(partitions))


ALL = [topic("orders", partition(0, [1, 2, 3]), partition(1, [2, 3, 1]), partition(2, [3, 1, 2]))]


def told(**figures: str | None) -> BrokerHealth:
    """A broker's figures; `_` stands for a dot, None takes one away."""
    changed = {**FIGURES, **{name.replace("_", "."): value for name, value in figures.items()}}
    return BrokerHealth(True, {name: value for name, value in changed.items() if value is not None})


def directory(**changes: Any) -> LogDirectory:
    replicas = {TopicPartition("orders", index): ReplicaFiles(10**6, 0) for index in range(3)}
    return LogDirectory("/data", False, 1000 * GIGABYTE, 500 * GIGABYTE, replicas)._replace(**changes)


def view(hosts: Mapping[int, str] | None = None, dead: tuple[int, ...] = ()) -> ClusterView:
    named = hosts or {1: "kafka1", 2: "kafka2", 3: "kafka3"}
    brokers = [
        BrokerView(number, host, 9092, None, number not in dead, number not in dead)
        for number, host in named.items()
    ]
    return ClusterView("id", 1, brokers)


def facts(
    topics: list[TopicState] | None = None,
    brokers: Mapping[int, BrokerHealth] | None = None,
    seen_as: ClusterView | None = None,
    directories: Mapping[int, list[LogDirectory]] | None = None,
    **changes: Any,
) -> Facts:
    """What `headrace.client.health` says of these brokers and topics, and what else there is to know."""
    topics = ALL if topics is None else topics
    brokers = dict.fromkeys((1, 2, 3), told()) if brokers is None else brokers
    cluster = view() if seen_as is None else seen_as
    held = {number: [directory()] for number in (1, 2, 3)} if directories is None else directories
    judged = judge(cluster, topics, brokers, held)
    names = [each.name for each in topics]
    well = Facts(
        NOW_MS,
        cluster,
        topics,
        judged,
        brokers,
        dict.fromkeys(brokers, BROKER_SETTINGS),
        dict.fromkeys(names, TOPIC_SETTINGS),
        held,
        dict.fromkeys(brokers, Clock(-3, 4)),
        {"readers": GroupFacts("readers", "Stable", 2, True, {ORDERS: 900}, frozenset({"orders"}))},
        [{"readers": GroupLook("Stable", 4)}, {"readers": GroupLook("Stable", 4)}],
        2.0,
        {ORDERS: Ends(0, 1000)},
        {ORDERS: 100},
        {ORDERS: 400},
    )
    return well._replace(**changes)


def judge(
    cluster: ClusterView,
    topics: list[TopicState],
    brokers: Mapping[int, BrokerHealth],
    directories: Mapping[int, list[LogDirectory]],
    **changes: Any,
) -> Health:
    minima = {each.name: 2 for each in topics}
    seen = Observation(cluster, topics, minima, {}, {}, brokers, directories)
    return health.judge(seen._replace(**changes))

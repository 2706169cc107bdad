"""The state of a whole cluster in one look: who lives, who leads, what is not as it should be.

`gather` asks, `judge` counts, `client/findings.py` says what to do about it. The cost of a look grows with
the number of partitions once (Metadata), and otherwise with what is wrong: the lag is asked for only where a
replica is out of sync or on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client import configs, log_dirs, reassignments
from headrace.client.broker_health import BrokerHealth, ask_brokers
from headrace.client.cluster import Cluster
from headrace.client.internal_factors import ask_factors, fewest_replicas
from headrace.client.log_dirs import LogDirectory, ReplicaFiles
from headrace.client.reassignments import Reassignment
from headrace.client.refusals import refusal
from headrace.client.topics import PartitionState, TopicState, list_topics
from headrace.config.health import DAMAGE, QUARANTINED, growth_of
from headrace.core.ids import TopicPartition
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_cluster_response import DescribeClusterResponse

MIN_ISR: Final = "min.insync.replicas"


class BrokerView(NamedTuple):
    broker_id: int
    host: str
    port: int
    rack: str | None
    alive: bool
    """False while it is fenced, known from replica lists alone, or does not answer."""
    registered: bool = True
    """Whether the cluster counts on it: it is not fenced."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}" if self.host else ""

    @property
    def state(self) -> str:
        if self.alive:
            return "alive"
        return "no answer" if self.registered else "down"


class ClusterView(NamedTuple):
    cluster_id: str
    controller: int
    brokers: list[BrokerView]


class Observation(NamedTuple):
    """Everything that `judge` needs, as it was answered."""

    cluster: ClusterView
    topics: list[TopicState]
    min_isr: Mapping[str, int]
    moving: Mapping[TopicPartition, Reassignment]
    files: Mapping[tuple[TopicPartition, int], ReplicaFiles]
    brokers: Mapping[int, BrokerHealth] = {}
    """What each registered broker says of itself."""
    directories: Mapping[int, Sequence[LogDirectory]] = {}
    """Of each broker that answers, without what is in them."""
    factors: Mapping[str, int] = {}
    """Replicas that internal topics should have, of those that may have fewer."""


class Health(NamedTuple):
    view: ClusterView
    partitions: int
    offline: list[TopicPartition]
    """Without a leader, or with one that cannot serve it: neither written nor read."""
    under_min_isr: list[TopicPartition]
    """Writes with acks=all are refused."""
    at_min_isr: list[TopicPartition]
    """One more replica lost, and writes with acks=all are refused."""
    under_replicated: list[TopicPartition]
    not_preferred: list[TopicPartition]
    """Led by another than the first of their replicas."""
    leaders: dict[int, int]
    replicas: dict[int, int]
    moving: Mapping[TopicPartition, Reassignment]
    lagging: dict[tuple[TopicPartition, int], int | None]
    """(partition, broker) of each replica out of sync, and its lag in records where it can be asked."""
    brokers: Mapping[int, BrokerHealth] = {}
    internal: frozenset[str] = frozenset()
    """Topics that are not users'."""
    directories: Mapping[int, Sequence[LogDirectory]] = {}
    thin: Mapping[str, int] = {}
    """Internal topics with fewer replicas than are configured though there are brokers for them, and how many
    they should have."""

    holders: Mapping[TopicPartition, Sequence[int]] = {}
    """The brokers with a replica of each partition that is offline."""

    def days_left(self, broker_id: int, directory: LogDirectory) -> float | None:
        """Until it is full, if it goes on as in the last day; None if it does not grow, or nobody knows."""
        told = self.brokers.get(broker_id)
        growth = "" if told is None else told.figures.get(growth_of(directory.path), "")
        per_day = int(growth) if growth.lstrip("-").isdecimal() else 0
        return directory.usable_bytes / per_day if per_day > 0 and directory.usable_bytes >= 0 else None

    @property
    def without_zookeeper(self) -> list[int]:
        """Brokers that answer, and do not reach ZooKeeper."""
        return [number for number, each in self.brokers.items() if each.reaches_zookeeper is False]

    @property
    def is_frozen(self) -> bool:
        """No broker reaches ZooKeeper: nothing can be decided, and a broker that stops is not replaced."""
        answering = [each for each in self.brokers.values() if each.answers]
        return bool(answering) and all(each.reaches_zookeeper is False for each in answering)

    @property
    def max_lag(self) -> int | None:
        """0 while all are in sync; None where no replica that is out of sync could be asked."""
        known = [lag for lag in self.lagging.values() if lag is not None]
        return max(known, default=None if self.lagging else 0)

    @property
    def dead(self) -> list[int]:
        return [broker.broker_id for broker in self.view.brokers if not broker.alive]

    @property
    def unreadable(self) -> dict[int, str]:
        """Records that are damaged and that no other replica in sync gives, as their brokers say."""
        told = {number: each.figures.get(DAMAGE, "") for number, each in self.brokers.items()}
        return {number: ranges for number, ranges in told.items() if ranges}

    @property
    def damaged_partitions(self) -> set[str]:
        """Those with records that are refused, so far as brokers name them."""
        return {
            told.partition(" offsets ")[0]
            for ranges in self.unreadable.values()
            for told in ranges.split(", ")
        }

    @property
    def quarantined(self) -> dict[str, dict[int, bool]]:
        """The brokers that answer and do not serve their replica of a partition, because it is damaged; and
        whether a restart may open it again."""
        found: dict[str, dict[int, bool]] = {}
        for number, each in self.brokers.items():
            for told in each.figures.get(QUARANTINED, "").split(", "):
                name, epoch, _ = told.partition(" epoch ")
                if name:
                    found.setdefault(name, {})[number] = bool(epoch)
        return found

    @property
    def is_well(self) -> bool:
        """Nothing is missing that comes back when somebody waits: no waiting gives an internal topic more
        replicas. Until then no other broker may be restarted."""
        return self._replace(thin={}).verdict == "healthy" and not self.moving

    @property
    def verdict(self) -> str:
        """offline: some partitions cannot be used. unwritable: some refuse acks=all. unreadable: some records
        are damaged, and there is no other copy. degraded: everything works, with less safety than asked for.
        """
        if self.offline or self.under_min_isr:
            return "offline" if self.offline else "unwritable"
        if self.unreadable:
            return "unreadable"
        lacking = self.under_replicated or self.dead or self.without_zookeeper or self.thin
        return "degraded" if lacking else "healthy"


async def gather(cluster: Cluster) -> Observation:
    view, topics = await asyncio.gather(describe_cluster(cluster), list_topics(cluster, internal=True))
    brokers = await ask_brokers(cluster, (broker.broker_id for broker in view.brokers if broker.alive))
    moving = {}
    controller = brokers.get(view.controller)
    # Whoever asks a controller that is gone waits for another, and nobody may be able to elect one.
    if (controller is None or controller.answers) and (await cluster.any_broker()).supports(
        ApiKey.LIST_PARTITION_REASSIGNMENTS
    ):
        moving = await reassignments.list_reassignments(cluster)
    minima = await min_isr(cluster, [topic.name for topic in topics])
    alive = {number for number, each in brokers.items() if each.answers}
    holders: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for state in topic.partitions:
            for broker_id in state.replicas:
                if broker_id not in state.isr and broker_id in alive:
                    holders.setdefault(broker_id, []).append(TopicPartition(topic.name, state.partition))
    files, directories = await asyncio.gather(
        log_dirs.replica_files(cluster, holders), log_dirs.directories_of(cluster, alive)
    )
    factors = await ask_factors(cluster, topics, sorted(alive))
    return Observation(view, topics, minima, moving, files, brokers, directories, factors)


def judge(seen: Observation) -> Health:
    internal = frozenset(topic.name for topic in seen.topics if topic.internal)
    health = Health(
        _as_they_answer(seen),
        0,
        [],
        [],
        [],
        [],
        [],
        {},
        {},
        seen.moving,
        {},
        seen.brokers,
        internal,
        seen.directories,
        _thin(seen),
        {
            TopicPartition(topic.name, state.partition): state.replicas
            for topic in seen.topics
            for state in topic.partitions
            if _is_offline(state)
        },
    )
    for broker in health.view.brokers:
        health.leaders[broker.broker_id] = health.replicas[broker.broker_id] = 0
    count = 0
    for topic in seen.topics:
        least = seen.min_isr.get(topic.name, 1)
        for state in topic.partitions:
            count += 1
            _judge_partition(health, TopicPartition(topic.name, state.partition), state, least, seen)
    return health._replace(partitions=count)


def _thin(seen: Observation) -> dict[str, int]:
    """As long as they are being moved they are on their way to what they should be."""
    moving = {partition.topic for partition in seen.moving}
    wanted = {name: min(factor, len(seen.cluster.brokers)) for name, factor in seen.factors.items()}
    return {
        topic.name: wanted[topic.name]
        for topic in seen.topics
        if topic.name not in moving and fewest_replicas(topic) < wanted.get(topic.name, 0)
    }


def _judge_partition(
    health: Health, partition: TopicPartition, state: PartitionState, least: int, seen: Observation
) -> None:
    for broker_id in state.replicas:
        health.replicas[broker_id] += 1
        if broker_id not in state.isr:
            files = seen.files.get((partition, broker_id))
            lag = None if files is None or state.leader < 0 else files.lag  # behind nobody
            health.lagging[partition, broker_id] = lag
    # A replica that is being added is not missed yet.
    moving = seen.moving.get(partition)
    expected = len(state.replicas) - (len(moving.adding) if moving else 0)
    if len(state.isr) < expected:
        health.under_replicated.append(partition)
    if _is_offline(state):
        health.offline.append(partition)
        return
    health.leaders[state.leader] = health.leaders.get(state.leader, 0) + 1
    least = min(least, len(state.replicas))  # as brokers count: with fewer replicas all of them are needed
    if len(state.isr) < least:
        health.under_min_isr.append(partition)
    elif len(state.isr) == least and expected > least:
        health.at_min_isr.append(partition)
    if moving is None and state.replicas and state.leader != state.replicas[0]:
        health.not_preferred.append(partition)


def _is_offline(state: PartitionState) -> bool:
    return state.leader < 0 or state.leader in state.offline


def _as_they_answer(seen: Observation) -> ClusterView:
    """Alive is who answers. Brokers that hold replicas and that nobody knows (any more) belong into the
    picture too, as dead."""
    silent = {number for number, each in seen.brokers.items() if not each.answers}
    told = [
        broker._replace(alive=False) if broker.broker_id in silent else broker
        for broker in seen.cluster.brokers
    ]
    known = {broker.broker_id for broker in seen.cluster.brokers}
    named = {
        broker_id: None for topic in seen.topics for state in topic.partitions for broker_id in state.replicas
    }
    missing = [
        BrokerView(broker_id, "", 0, None, False, False) for broker_id in named if broker_id not in known
    ]
    return seen.cluster._replace(brokers=sorted([*told, *missing]))


async def describe_cluster(cluster: Cluster) -> ClusterView:
    async def attempt() -> ClusterView:
        request = DescribeClusterRequest(include_fenced_brokers=True)
        connection = await cluster.any_broker()
        if connection.version_for(DescribeClusterRequest) < 2:
            request.include_fenced_brokers = False
        reply = await connection.request(request, DescribeClusterResponse, timeout=cluster.request_timeout)
        if reply.error_code:
            raise refusal(reply.error_code, "the cluster", reply.error_message)
        brokers = sorted(
            BrokerView(
                node.broker_id, node.host, node.port, node.rack, not node.is_fenced, not node.is_fenced
            )
            for node in reply.brokers
        )
        return ClusterView(reply.cluster_id, reply.controller_id, brokers)

    return await cluster.retried(attempt)


async def min_isr(cluster: Cluster, topics: Sequence[str]) -> dict[str, int]:
    resources = [configs.Resource(configs.ResourceType.TOPIC, name) for name in topics]
    return min_isr_in(await configs.describe_many(cluster, resources, [MIN_ISR]))


def min_isr_in(
    described: Mapping[configs.Resource, Sequence[configs.ConfigEntry]],
) -> dict[str, int]:
    """By topic, of settings that have it among others."""
    return {
        resource.name: int(entry.value)
        for resource, entries in described.items()
        for entry in entries
        if entry.name == MIN_ISR and entry.value
    }


def holders_of(topics: Iterable[TopicState], alive: Iterable[int]) -> dict[int, list[TopicPartition]]:
    """The partitions of which each living broker has a replica."""
    living = set(alive)
    holders: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for state in topic.partitions:
            for broker_id in state.replicas:
                if broker_id in living:
                    holders.setdefault(broker_id, []).append(TopicPartition(topic.name, state.partition))
    return holders

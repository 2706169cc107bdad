"""The state of a whole cluster in one look: who lives, who leads, what is not as it should be.

`gather` asks, `judge` counts. The cost of a look grows with the number of partitions once (Metadata), and
otherwise with what is wrong: the lag is asked for only where a replica is out of sync or on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client import admin, configs, log_dirs, reassignments
from headrace.client.cluster import Cluster
from headrace.client.log_dirs import ReplicaFiles
from headrace.client.reassignments import Reassignment
from headrace.client.refusals import refusal
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
    """False while it is fenced or known from replica lists alone."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}" if self.host else ""


class ClusterView(NamedTuple):
    cluster_id: str
    controller: int
    brokers: list[BrokerView]


class Observation(NamedTuple):
    """Everything that `judge` needs, as it was answered."""

    cluster: ClusterView
    topics: list[admin.TopicState]
    min_isr: Mapping[str, int]
    moving: Mapping[TopicPartition, Reassignment]
    files: Mapping[tuple[TopicPartition, int], ReplicaFiles]


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

    @property
    def max_lag(self) -> int | None:
        """0 while all are in sync; None where no replica that is out of sync could be asked."""
        known = [lag for lag in self.lagging.values() if lag is not None]
        return max(known, default=None if self.lagging else 0)

    @property
    def dead(self) -> list[int]:
        return [broker.broker_id for broker in self.view.brokers if not broker.alive]

    @property
    def verdict(self) -> str:
        """offline: some data cannot be used. degraded: everything works, with less safety than asked for."""
        if self.offline or self.under_min_isr:
            return "offline" if self.offline else "unwritable"
        return "degraded" if self.under_replicated or self.dead else "healthy"


async def gather(cluster: Cluster) -> Observation:
    view, topics = await asyncio.gather(describe_cluster(cluster), admin.list_topics(cluster, internal=True))
    moving = {}
    if (await cluster.any_broker()).supports(ApiKey.LIST_PARTITION_REASSIGNMENTS):
        moving = await reassignments.list_reassignments(cluster)
    minima = await min_isr(cluster, [topic.name for topic in topics])
    alive = {broker.broker_id for broker in view.brokers if broker.alive}
    holders: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for state in topic.partitions:
            for broker_id in state.replicas:
                if broker_id not in state.isr and broker_id in alive:
                    holders.setdefault(broker_id, []).append(TopicPartition(topic.name, state.partition))
    files = await log_dirs.replica_files(cluster, holders)
    return Observation(view, topics, minima, moving, files)


def judge(seen: Observation) -> Health:
    health = Health(_with_unknown(seen), 0, [], [], [], [], [], {}, {}, seen.moving, {})
    for broker in health.view.brokers:
        health.leaders[broker.broker_id] = health.replicas[broker.broker_id] = 0
    count = 0
    for topic in seen.topics:
        least = seen.min_isr.get(topic.name, 1)
        for state in topic.partitions:
            count += 1
            _judge_partition(health, TopicPartition(topic.name, state.partition), state, least, seen)
    return health._replace(partitions=count)


def _judge_partition(
    health: Health, partition: TopicPartition, state: admin.PartitionState, least: int, seen: Observation
) -> None:
    for broker_id in state.replicas:
        health.replicas[broker_id] += 1
        if broker_id not in state.isr:
            files = seen.files.get((partition, broker_id))
            health.lagging[partition, broker_id] = None if files is None else files.lag
    # A replica that is being added is not missed yet.
    moving = seen.moving.get(partition)
    expected = len(state.replicas) - (len(moving.adding) if moving else 0)
    if len(state.isr) < expected:
        health.under_replicated.append(partition)
    if state.leader < 0 or state.leader in state.offline:
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


def _with_unknown(seen: Observation) -> ClusterView:
    """Brokers that hold replicas and that nobody knows (any more) belong into the picture, as dead."""
    known = {broker.broker_id for broker in seen.cluster.brokers}
    named = {
        broker_id: None for topic in seen.topics for state in topic.partitions for broker_id in state.replicas
    }
    missing = [BrokerView(broker_id, "", 0, None, False) for broker_id in named if broker_id not in known]
    return seen.cluster._replace(brokers=sorted([*seen.cluster.brokers, *missing]))


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
            BrokerView(node.broker_id, node.host, node.port, node.rack, not node.is_fenced)
            for node in reply.brokers
        )
        return ClusterView(reply.cluster_id, reply.controller_id, brokers)

    return await cluster.retried(attempt)


async def min_isr(cluster: Cluster, topics: Sequence[str]) -> dict[str, int]:
    resources = [configs.Resource(configs.ResourceType.TOPIC, name) for name in topics]
    described = await configs.describe_many(cluster, resources, [MIN_ISR])
    return {
        resource.name: int(entry.value)
        for resource, entries in described.items()
        for entry in entries
        if entry.name == MIN_ISR and entry.value
    }


def holders_of(topics: Iterable[admin.TopicState], alive: Iterable[int]) -> dict[int, list[TopicPartition]]:
    """The partitions of which each living broker has a replica."""
    living = set(alive)
    holders: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for state in topic.partitions:
            for broker_id in state.replicas:
                if broker_id in living:
                    holders.setdefault(broker_id, []).append(TopicPartition(topic.name, state.partition))
    return holders

"""Look at a cluster as self-balancing does, by Kafka's protocol and the reports of brokers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.client import broker_reports, configs, health, reassignments
from headrace.client.balancing_decisions import BalancingDecision, decisions
from headrace.client.broker_health import ask_brokers
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType
from headrace.client.errors import ClientFailure
from headrace.client.reassignments import Reassignment
from headrace.client.topics import TopicState, list_topics
from headrace.config.broker import BROKER_PROPERTIES
from headrace.config.broker_properties.balancing import BalancingProperties
from headrace.config.load_report import LOAD
from headrace.config.property import Property
from headrace.controller.self_balancing.hindrances import Circumstances, hindrance
from headrace.controller.self_balancing.loads import ClusterLoad, PartitionLoad, Settings
from headrace.controller.self_balancing.rates import Rates, RateSamples
from headrace.controller.self_balancing.reports import LoadReport, read_report
from headrace.controller.self_balancing.slices import result_of
from headrace.controller.self_balancing.survey import MOVED_REPLICAS, rooms, sizes_of
from headrace.core.ids import TopicPartition

PROPERTIES = [each for each in vars(BalancingProperties).values() if isinstance(each, Property)]


@dataclass(slots=True)
class BalanceLook:
    enabled: bool
    settings: Settings
    excluded: frozenset[int]
    load: ClusterLoad
    hindrance: str | None
    """Why nothing would be done, whatever the load is."""
    decisions: list[BalancingDecision] = field(default_factory=list)
    """Of all brokers that have been the controller, the latest last."""


async def look(cluster: Cluster, seconds: float) -> BalanceLook:
    """Twice, so many seconds apart: rates are what was counted in between."""
    view = await health.describe_cluster(cluster)
    values = await _configured(cluster, view)
    settings = Settings(
        threshold=values[BalancingProperties.headrace_balance_threshold_percent.name] / 100,
        max_moves=values[BalancingProperties.headrace_balance_max_moves.name],
        max_disk_percent=values[BalancingProperties.headrace_balance_max_disk_percent.name],
        min_bytes=values[BalancingProperties.headrace_balance_min_bytes.name],
        min_rate=values[BalancingProperties.headrace_balance_min_bytes_per_second.name],
    )
    excluded = frozenset(map(int, values[BalancingProperties.headrace_balance_excluded_brokers.name]))
    alive = [each.broker_id for each in view.brokers if each.alive]
    samples = RateSamples()
    reports, silent = await _reports(cluster, alive)
    samples.note(time.monotonic(), reports)
    if seconds > 0:
        await asyncio.sleep(seconds)
        reports, silent = await _reports(cluster, alive)
        samples.note(time.monotonic(), reports)
    topics = await list_topics(cluster, internal=True)
    moving = await reassignments.list_reassignments(cluster)
    found = _circumstances(view, topics, moving, await _moved(cluster, moving), excluded)
    found.silent = silent
    load = ClusterLoad(
        _partitions(topics, moving, sizes_of(reports), samples.rates()),
        rooms({b.broker_id: b.rack for b in view.brokers if b.alive}, reports, settings, excluded),
    )
    return BalanceLook(
        values[BalancingProperties.headrace_balance_enable.name],
        settings,
        excluded,
        load,
        hindrance(found, reports, settings, load.brokers),
        decisions((await ask_brokers(cluster, alive)).values()),
    )


async def _configured(cluster: Cluster, view: health.ClusterView) -> dict[str, Any]:
    """As the controller has it."""
    names = [each.name for each in PROPERTIES]
    resource = Resource(ResourceType.BROKER, str(view.controller))
    told = {each.name: each.value for each in await configs.describe_configs(cluster, resource, names)}
    if not told:
        raise ClientFailure("this cluster knows no self-balancing", "upgrade its brokers first")
    return {name: BROKER_PROPERTIES[name].parse(told[name] or "") for name in names}


async def _reports(cluster: Cluster, alive: Iterable[int]) -> tuple[dict[int, LoadReport], dict[int, str]]:
    reports: dict[int, LoadReport] = {}
    silent: dict[int, str] = {}
    for broker_id, told in (await broker_reports.ask_all(cluster, alive, LOAD)).items():
        try:
            if told is None:
                silent[broker_id] = "it does not answer"
            else:
                reports[broker_id] = result_of(read_report(told.figures))
        except ValueError as error:
            silent[broker_id] = str(error)
    return reports, silent


async def _moved(cluster: Cluster, moving: Mapping[TopicPartition, Reassignment]) -> set[TopicPartition]:
    """Of what moves, that which self-balancing has begun."""
    topics = [Resource(ResourceType.TOPIC, name) for name in dict.fromkeys(each.topic for each in moving)]
    return {
        TopicPartition(resource.name, int(pair.partition(":")[0]))
        for resource, entries in (await configs.describe_many(cluster, topics, [MOVED_REPLICAS])).items()
        for entry in entries
        for pair in (entry.value or "").split(",")
        if pair
    }


def _circumstances(
    view: health.ClusterView,
    topics: Iterable[TopicState],
    moving: Mapping[TopicPartition, Reassignment],
    own: set[TopicPartition],
    excluded: frozenset[int],
) -> Circumstances:
    found = Circumstances(moved_by_others=sorted(set(moving) - own))
    holders: set[int] = set()
    for topic in topics:
        for state in topic.partitions:
            partition = TopicPartition(topic.name, state.partition)
            holders.update(state.replicas)
            adding = moving[partition].adding if partition in moving else ()
            if not set(state.replicas) - set(adding) <= set(state.isr):
                found.out_of_sync.append(partition)
    spared = excluded - holders
    found.down = [each.broker_id for each in view.brokers if not each.alive and each.broker_id not in spared]
    return found


def _partitions(
    topics: Iterable[TopicState],
    moving: Mapping[TopicPartition, Reassignment],
    sizes: Mapping[TopicPartition, int],
    rates: Mapping[TopicPartition, Rates],
) -> dict[TopicPartition, PartitionLoad]:
    partitions = {}
    for topic in topics:
        for state in topic.partitions:
            key = TopicPartition(topic.name, state.partition)
            going = moving[key].removing if key in moving else ()
            partitions[key] = PartitionLoad(
                tuple(each for each in state.replicas if each not in going),
                sizes.get(key, 0),
                *rates.get(key, Rates()),
                arriving=tuple(moving[key].adding) if key in moving else (),
            )
    return partitions

"""What a scrape reads of the broker's state, gathered when it is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.counting import count_coordinators
from headrace.metrics.registry import BrokerGauges, LinkGauges, PartitionGauges, SpaceGauges, ZooKeeperGauges

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.replication.partition import Partition

RUNNING: Final = 3


def connect_gauges(broker: Broker) -> None:
    broker.runtime.metrics.read_gauges = lambda: _gauges(broker)
    broker.runtime.metrics.memory = broker.runtime.memory
    broker.runtime.metrics.read_partitions = lambda: _partitions(broker)
    broker.runtime.metrics.read_spaces = lambda: _spaces(broker)
    broker.runtime.metrics.read_loop_seconds = time.thread_time
    broker.runtime.metrics.read_links = lambda: _links(broker)
    broker.runtime.metrics.read_zookeeper = lambda: _zookeeper(broker)
    broker.runtime.metrics.coordinators.count = lambda size: count_coordinators(
        broker.runtime, broker.partitions, broker.coordinators, size
    )


def _gauges(broker: Broker) -> BrokerGauges:
    image = broker.metadata.image
    leaders = under_min = at_min = under_replicated = max_lag = 0
    offline = len(broker.partitions.offline)
    for partition in broker.partitions:
        offline += not partition.log.directory.is_online
        max_lag = max(max_lag, partition.lag)
        if partition.is_leader:
            leaders += 1
            under_replicated += partition.in_sync_count < len(partition.replicas)
            least = min(partition.log.config.min_insync_replicas, len(partition.replicas))
            spare = partition.in_sync_count - least
            under_min += spare < 0
            at_min += spare == 0
    fenced = sum(registration.fenced for registration in image.brokers.values())
    leaderless = led_by_another = moving = 0
    for topic in image.topics_by_name.values():
        leaderless += len(topic.leaderless_partitions())
        led_by_another += len(topic.partitions_led_by_another())
        for index in topic.exceptional_partitions():
            row = topic.exceptional(index)
            moving += bool(row.adding or row.removing) and topic.leader(index) == broker.runtime.broker_id
    return BrokerGauges(
        partition_count=len(broker.partitions),
        leader_count=leaders,
        under_replicated_partitions=under_replicated,
        under_min_isr_partitions=under_min,
        at_min_isr_partitions=at_min,
        offline_replicas=offline,
        offline_partitions=leaderless,
        preferred_replica_imbalance=leaderless + led_by_another,
        reassigning_partitions=moving,
        offline_log_directories=sum(not directory.is_online for directory in broker.storage.logs.directories),
        is_active_controller=broker.controller.is_active,
        global_topic_count=len(image.topics_by_name),
        global_partition_count=image.partition_count,
        active_brokers=len(image.brokers) - fenced,
        fenced_brokers=fenced,
        waiting_fetches=len(broker.context.fetches.purgatory),
        waiting_produces=len(broker.context.produces.purgatory),
        fetch_sessions=len(broker.context.fetches.sessions),
        fetch_session_partitions=broker.context.fetches.sessions.partition_count,
        max_lag=max_lag,
        broker_state=RUNNING,
    )


def _partitions(broker: Broker) -> Iterator[PartitionGauges]:
    for partition in list(broker.partitions):
        yield PartitionGauges(
            topic=partition.topic_partition.topic,
            partition=partition.topic_partition.partition,
            size_bytes=partition.log.size_bytes,
            log_start_offset=_log_start(partition),
            log_end_offset=partition.log.end_offset,
            segments=len(partition.log.segments),
            lag=None if partition.is_leader else partition.lag,
        )


def _log_start(partition: Partition) -> int:
    """Of the disk, as long as it is not known where the history begins."""
    start = partition.log_start_offset
    return partition.log.log_start_offset if start is None else start


def _spaces(broker: Broker) -> list[SpaceGauges]:
    spaces = broker.storage.disk_space.spaces
    return [
        SpaceGauges(directory.path, *spaces[directory.path], directory.is_full)
        for directory in broker.storage.logs.online()
        if directory.path in spaces
    ]


def _links(broker: Broker) -> list[LinkGauges]:
    """A partition whose stop is in the metadata is copied by nobody: its leader tells."""
    gauges = [
        LinkGauges(*linked.topic_partition, linked.lag, linked.lost_records, linked.stopped is not None)
        for linked in broker.context.linking.all_copied()
    ]
    for topic, link in broker.metadata.image.links.items():
        for index in link.stopped:
            partition = broker.partitions.find(topic, index)
            if partition is not None and partition.is_leader:
                gauges.append(LinkGauges(topic, index, -1, 0, is_stopped=True))
    return gauges


def _zookeeper(broker: Broker) -> ZooKeeperGauges | None:
    reachability = broker.context.peers.reachability
    return (
        None if reachability is None else ZooKeeperGauges(reachability.session, reachability.silent_seconds)
    )

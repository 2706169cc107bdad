"""The cluster as self-balancing sees it: from the metadata, and from what each broker tells of its load."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from headrace.controller.image import ConfigResource, MetadataImage, ResourceType
from headrace.controller.self_balancing.hindrances import Circumstances
from headrace.controller.self_balancing.loads import BrokerRoom, ClusterLoad, PartitionLoad, Settings
from headrace.controller.self_balancing.rates import Rates
from headrace.controller.self_balancing.reports import LoadReport
from headrace.core.ids import TopicPartition

MOVED_REPLICAS: Final = "headrace.balance.moved.replicas"
"""The topic's setting that names what self-balancing is moving: so the next controller knows it too."""
AT_ONCE: Final = 64
NO_RATES: Final = Rates()


def moved_replicas(image: MetadataImage, topic: str) -> dict[int, set[int]]:
    """The brokers to which self-balancing moves each partition, whether they have it by now or not."""
    found: dict[int, set[int]] = {}
    for pair in image.configs(ConfigResource(ResourceType.TOPIC, topic)).get(MOVED_REPLICAS, "").split(","):
        partition, _, broker = pair.partition(":")
        if broker:
            found.setdefault(int(partition), set()).add(int(broker))
    return found


def topics_with_moves(image: MetadataImage) -> list[str]:
    return [
        resource.name
        for resource in image.configured_resources()
        if resource.type == ResourceType.TOPIC and MOVED_REPLICAS in image.configs(resource)
    ]


def circumstances(image: MetadataImage, excluded: Collection[int] = ()) -> Circumstances:
    """Quick, however many partitions there are: nearly all topics are in sync and none of theirs moves."""
    found = Circumstances()
    for name, topic in image.topics_by_name.items():
        rare = topic.exceptional_partitions()
        own = moved_replicas(image, name) if rare else {}
        for partition in rare:
            exceptional = topic.exceptional(partition)
            if (exceptional.adding or exceptional.removing) and partition not in own:
                found.moved_by_others.append(TopicPartition(name, partition))
        if topic.is_in_sync:
            continue
        for partition in range(len(topic)):
            arriving = topic.exceptional(partition).adding
            if not set(topic.replicas(partition)).difference(arriving) <= set(topic.isr(partition)):
                found.out_of_sync.append(TopicPartition(name, partition))
    for broker in image.brokers.values():
        is_spared = broker.broker_id in excluded and not _holds_anything(image, broker.broker_id)
        if not broker.active and not is_spared:
            found.down.append(broker.broker_id)
    return found


def _holds_anything(image: MetadataImage, broker_id: int) -> bool:
    return any(
        True for topic in image.topics_by_name.values() for _ in topic.partitions_with_replica(broker_id)
    )


def cluster_load(
    image: MetadataImage,
    reports: Mapping[int, LoadReport],
    rates: Mapping[TopicPartition, Rates],
    settings: Settings,
    excluded: Collection[int] = (),
) -> Iterator[ClusterLoad | None]:
    """None again and again, and the answer last. What is on its way counts where it goes."""
    sizes = sizes_of(reports)
    partitions: dict[TopicPartition, PartitionLoad] = {}
    looked = 0
    for name, topic in list(image.topics_by_name.items()):
        for partition in range(len(topic)):
            key, rare = TopicPartition(name, partition), topic.exceptional(partition)
            rate = rates.get(key, NO_RATES)
            partitions[key] = PartitionLoad(
                tuple(each for each in topic.replicas(partition) if each not in rare.removing),
                sizes.get(key, 0),
                *rate,
                arriving=tuple(rare.adding),
            )
            looked += 1
            if looked % AT_ONCE == 0:
                yield None
    racks: dict[int, str | None] = {
        each.broker_id: each.rack for each in image.brokers.values() if each.active
    }
    yield ClusterLoad(partitions, rooms(racks, reports, settings, excluded))


def sizes_of(reports: Mapping[int, LoadReport]) -> dict[TopicPartition, int]:
    """As their leaders say."""
    return {
        TopicPartition(name, led.number): led.size_bytes
        for report in reports.values()
        for name, traffic in report.topics.items()
        for led in traffic.led
    }


def rooms(
    racks: Mapping[int, str | None],
    reports: Mapping[int, LoadReport],
    settings: Settings,
    excluded: Collection[int] = (),
) -> dict[int, BrokerRoom]:
    """Of the brokers that may be given something: those in `racks` that tell their load."""
    found = {}
    for broker_id, rack in sorted(racks.items()):
        report = reports.get(broker_id)
        if report is None or broker_id in excluded:
            continue
        known = [each for each in report.directories if each.used_percent is not None]
        # Nobody says to which directory a replica will go, so the fullest counts.
        room = min(
            (
                int(each.total_bytes * settings.max_disk_percent / 100) - (each.total_bytes - each.free_bytes)
                for each in known
            ),
            default=None,
        )
        total = sum(each.total_bytes for each in known) if len(known) == len(report.directories) else 0
        found[broker_id] = BrokerRoom(rack, total, room)
    return found

"""What a mirror asks both clusters, and what it makes on the target."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from headrace.client.admin import add_partitions, create_topic
from headrace.client.cluster import Cluster
from headrace.client.configs import ConfigEntry, Resource, ResourceType, alter_configs, describe_configs
from headrace.client.errors import Refused
from headrace.client.health import describe_cluster
from headrace.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from headrace.client.topics import TopicState, list_topics
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.mirror.plan import Seen
from headrace.spark.mirror.position import Position
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.mirror.settings import ANY_TIME, changes, initial
from headrace.spark.source.plan import View


def cluster_of(kafka: KafkaProperties, name: str) -> Cluster:
    client_id = kafka.get("client.id", f"headrace-mirror-{name}")
    return Cluster(kafka.bootstrap, client_id=client_id, security=kafka.security())


class Sides(NamedTuple):
    source: Cluster
    target: Cluster

    async def ids(self) -> tuple[str, str]:
        source, target = await asyncio.gather(describe_cluster(self.source), describe_cluster(self.target))
        return source.cluster_id, target.cluster_id

    async def close(self) -> None:
        await asyncio.gather(self.source.close(), self.target.close())


async def look(sides: Sides, config: MirrorConfig, position: Position) -> Seen:
    """Offsets first, ids last: if those are the known ones, the offsets are of these topics."""
    there = await topics_of(sides.source)
    wanted = config.targets(there.keys() | position.topics.keys())
    partitions = [
        TopicPartition(name, partition.partition)
        for name in sorted(wanted.keys() & there.keys())
        for partition in there[name].partitions
    ]
    latest = await list_offsets(sides.source, dict.fromkeys(partitions, LATEST), read_committed=True)
    earliest = await list_offsets(sides.source, dict.fromkeys(partitions, EARLIEST))
    after, found = await asyncio.gather(topics_of(sides.source), topics_of(sides.target))
    ids = {name: str(after[name].topic_id) for name in wanted.keys() & after.keys() & there.keys()}
    targets = {name: found[name] for name in wanted.values() if name in found}
    return Seen(
        View(_offsets(latest, ids), _offsets(earliest, ids), ids),
        wanted,
        {name: str(topic.topic_id) for name, topic in targets.items()},
        {name: len(topic.partitions) for name, topic in targets.items()},
    )


def _offsets(found: Mapping[TopicPartition, FoundOffset], ids: Mapping[str, str]) -> Offsets:
    return {(each.topic, each.partition): at.offset for each, at in found.items() if each.topic in ids}


async def topics_of(cluster: Cluster) -> dict[str, TopicState]:
    return {topic.name: topic for topic in await list_topics(cluster, internal=True)}


async def make(
    sides: Sides, name: str, target: str, some_topic: str, *, settings: bool, replication_factor: int | None
) -> None:
    """The target's topic with the source's partitions and settings. `some_topic` of the target tells which
    settings its brokers know."""
    source = (await topics_of(sides.source))[name]
    configs = initial(await _settings(sides.source, name)) if settings else {}
    known = {entry.name for entry in await _settings(sides.target, some_topic)}
    configs |= {key: value for key, value in ANY_TIME.items() if key in known}
    brokers = len((await describe_cluster(sides.target)).brokers)
    factor = replication_factor or min(source.replication_factor, brokers)
    try:
        await create_topic(
            sides.target,
            target,
            partitions=len(source.partitions),
            replication_factor=factor,
            configs=configs,
        )
    except Refused as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def grow(sides: Sides, target: str, partitions: int) -> None:
    await add_partitions(sides.target, target, partitions)


async def follow_settings(sides: Sides, name: str, target: str) -> dict[str, str | None]:
    """What was changed on the target."""
    wanted, there = await asyncio.gather(_settings(sides.source, name), _settings(sides.target, target))
    changed = changes(wanted, there)
    if changed:
        await alter_configs(sides.target, Resource(ResourceType.TOPIC, target), changed)
    return changed


async def _settings(cluster: Cluster, topic: str) -> list[ConfigEntry]:
    return await describe_configs(cluster, Resource(ResourceType.TOPIC, topic))


async def check_empty(sides: Sides, target: str) -> None:
    """A topic with records is not taken for a mirror's own unless somebody says so."""
    partitions = [
        TopicPartition(target, each.partition) for each in (await topics_of(sides.target))[target].partitions
    ]
    latest = await list_offsets(sides.target, dict.fromkeys(partitions, LATEST))
    earliest = await list_offsets(sides.target, dict.fromkeys(partitions, EARLIEST))
    held = sum(latest[each].offset - earliest[each].offset for each in partitions)
    if held:
        raise MirrorRefused(
            f"topic {target} of the target holds {held} offsets that this mirror has not written. If they "
            'are records of its own, say existing = "append" below [mirror]. If an older mirror of another '
            "name wrote them, go on with that name: this one would write all of them again"
        )


async def start_of(cluster: Cluster, topic: str, partition: int) -> int:
    """Where its log begins now."""
    target = TopicPartition(topic, partition)
    return (await list_offsets(cluster, {target: EARLIEST}))[target].offset

"""What can be known of a mirror without running it: commands ask here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from headrace.client.consumer import Consumer
from headrace.client.errors import Refused
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.spark.mirror import groups
from headrace.spark.mirror.clusters import Sides, cluster_of, look
from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.mirror.groups import Carried
from headrace.spark.mirror.plan import Seen, lag, stopped
from headrace.spark.mirror.position import Position, position_of
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.mirror.translation import Translation
from headrace.spark.mirror.translation_topic import TranslationTopic
from headrace.spark.sink.job import last_note


@dataclass(frozen=True)
class Reading:
    """The position and, as of then at least, all translations."""

    position: Position
    translation: Translation

    @classmethod
    async def of(cls, config: MirrorConfig) -> Self:
        sides = _sides(config)
        try:
            return await cls._of(config, sides)
        finally:
            await sides.close()

    @classmethod
    async def _of(cls, config: MirrorConfig, sides: Sides) -> Self:
        # The position first: then the topic has the pieces of all that it covers.
        position = await position_now(config)
        topic = TranslationTopic(sides.target, config.translations)
        try:
            await topic.refresh()
        except Refused as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        return cls(position, topic.translation)

    def translate(self, topic: str, partition: int, offset: int) -> int | None:
        """None where that is not mirrored yet, or not by this mirror."""
        return groups.translated(self.position, self.translation, TopicPartition(topic, partition), offset)


def _sides(config: MirrorConfig) -> Sides:
    return Sides(cluster_of(config.source, config.name), cluster_of(config.target, config.name))


async def position_now(config: MirrorConfig) -> Position:
    last = await last_note(config.options())
    return position_of(None if last is None else last.note)


async def groups_now(config: MirrorConfig) -> list[Carried]:
    if config.groups is None:
        raise MirrorRefused("no groups are carried: write [groups] into the configuration")
    sides = _sides(config)
    try:
        sight = await groups.sight(sides, config.groups)
        reading = await Reading._of(config, sides)
        seen = await look(sides, config, reading.position)
        coming = {name: seen.wanted[name] for name in seen.view.ids.keys() - reading.position.topics.keys()}
        return groups.decide(config.name, sight, reading.position, reading.translation, coming).shown
    finally:
        await sides.close()


@dataclass(frozen=True)
class TopicStatus:
    topic: str
    target: str
    partitions: int
    mirrored: int
    """Offsets of the source that are behind the position; a mirror that began at the latest counts from 0."""
    lag: int
    """Offsets that are not mirrored yet."""
    oldest_ms: int | None
    """When the oldest record was written that is not mirrored; None where there is none."""
    problem: str | None

    def lag_ms(self, now_ms: int) -> int:
        return 0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms)


@dataclass(frozen=True)
class MirrorStatus:
    source: str
    target: str
    batch: int
    topics: list[TopicStatus]
    absent: list[str]
    """Named, and not there."""
    coming: list[str]
    """There, and not begun with."""


async def status_now(config: MirrorConfig) -> MirrorStatus:
    sides = _sides(config)
    try:
        position = await position_now(config)
        seen = await look(sides, config, position)
        behind = {
            TopicPartition(*each): at
            for each, at in position.offsets().items()
            if seen.view.latest.get(each, at) > at and at >= seen.view.earliest.get(each, 0)
        }
        times = {each: await _time_at(sides, each, at) for each, at in behind.items()}
        return _status(position, seen, times, config)
    finally:
        await sides.close()


def _status(
    position: Position, seen: Seen, times: dict[TopicPartition, int | None], config: MirrorConfig
) -> MirrorStatus:
    problems, lags = stopped(position, seen), lag(position, seen.view)
    topics = []
    for name, topic in sorted(position.topics.items()):
        if name not in seen.wanted:
            continue
        oldest = [at for each, at in times.items() if each.topic == name and at is not None]
        topics.append(
            TopicStatus(
                name,
                topic.target,
                len(topic.offsets),
                sum(topic.offsets),
                lags[name],
                min(oldest, default=None),
                problems.get(name),
            )
        )
    there = seen.view.ids.keys()
    return MirrorStatus(
        position.source,
        position.target,
        position.number,
        topics,
        [name for name in config.named if name not in there and name not in position.topics],
        sorted(there - position.topics.keys()),
    )


async def _time_at(sides: Sides, partition: TopicPartition, offset: int) -> int | None:
    """Of the first record from there on that a reader sees."""
    consumer = Consumer(sides.source, {partition: offset}, max_wait_ms=10, partition_max_bytes=1)
    try:
        for fetched in await consumer.poll():
            for record in fetched.records:
                return record.timestamp
        return None
    finally:
        await consumer.close()

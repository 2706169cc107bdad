"""Tiered topics as they are seen at one moment: what lies in the object store, on disks, and is on its way.

None is what nobody could tell. A sum with a part that is not known is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from headrace.client.tiering import PartitionTier, tier_of
from headrace.client.topics import TopicState
from headrace.config.tier_report import LedTier
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.ends import Ends
from headrace.observe.tiers import Tiers


class PartitionTierSeen(NamedTuple):
    partition: int
    offsets: PartitionTier | None
    """None: its leader could not be asked, or has not read the manifest yet."""
    led: LedTier | None
    """None: its leader does not tell."""

    @property
    def waiting(self) -> int | None:
        """Records of sealed segments that are not in the store."""
        if self.offsets is None or self.led is None:
            return None
        if not self.led.waiting_segments:
            return 0
        return max(0, min(self.led.sealed_end, self.offsets.end) - self.offsets.tiered_end)


class TierSeen(NamedTuple):
    is_copied: bool
    is_fork: bool
    origin: str
    """Of a fork: the topic that it is a fork of; empty where that is gone, or not for this viewer."""
    partitions: Sequence[PartitionTierSeen]

    @property
    def remote_bytes(self) -> int | None:
        return self._sum(lambda led: led.remote_bytes)

    @property
    def local_bytes(self) -> int | None:
        """On the disks of leaders."""
        return self._sum(lambda led: led.local_bytes)

    @property
    def waiting_bytes(self) -> int | None:
        return self._sum(lambda led: led.waiting_bytes)

    @property
    def waiting_segments(self) -> int | None:
        return self._sum(lambda led: led.waiting_segments)

    @property
    def waiting_ms(self) -> int | None:
        """Of the oldest; None where one is not known that might be older."""
        is_known = all(each.led is not None for each in self.partitions)
        return self.known_wait_ms if is_known else None

    @property
    def known_wait_ms(self) -> int:
        return max((each.led.waiting_ms for each in self.partitions if each.led is not None), default=0)

    @property
    def stopped(self) -> Mapping[int, str]:
        """Partitions whose history is not kept up, and why."""
        return {each.partition: each.led.stopped for each in self.partitions if each.led and each.led.stopped}

    def _sum(self, read: Callable[[LedTier], int | None]) -> int | None:
        values = [None if each.led is None else read(each.led) for each in self.partitions]
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None


def tiers_seen(
    tiers: Tiers | Unknown, topics: Iterable[TopicState], ends: Mapping[TopicPartition, Ends]
) -> Mapping[str, TierSeen] | Unknown:
    if isinstance(tiers, Unknown):
        return tiers
    every = {topic.name: topic for topic in topics}
    by_id = {topic.topic_id: topic.name for topic in every.values()}
    return {
        name: TierSeen(
            settings.is_copied,
            settings.fork is not None,
            "" if settings.fork is None else by_id.get(settings.fork.origin, ""),
            [
                _partition(TopicPartition(name, state.partition), tiers, ends)
                for state in every[name].partitions
            ],
        )
        for name, settings in sorted(tiers.topics.items())
        if name in every
    }


def _partition(place: TopicPartition, tiers: Tiers, ends: Mapping[TopicPartition, Ends]) -> PartitionTierSeen:
    asked, end = tiers.offsets.get(place), ends.get(place)
    offsets = None
    if asked is not None and end is not None:
        # It was asked after the end: what has been copied since lies behind it.
        latest = min(asked.latest_tiered, end.end - 1)
        offsets = tier_of(end.first, asked.local_start, latest, end.end)
    return PartitionTierSeen(place.partition, offsets, tiers.led.get(place))

"""What is shown of a tiered topic, as a whole and by partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.config.health import TIER_LATE_AFTER_SECONDS
from headrace.observe.snapshot import Snapshot, TopicSeen
from headrace.observe.tier_seen import PartitionTierSeen, TierSeen

LATE_MS: Final = int(TIER_LATE_AFTER_SECONDS * 1000)
MOST_STOPPED: Final = 20


class Shares(NamedTuple):
    """Records, or rather offsets, from the oldest to the newest. They add up to the whole history."""

    only_remote: int
    both: int
    waiting: int
    """Sealed, and not in the store."""
    written: int
    """In segments that are still written. All that is on disks alone, where nothing is known to wait."""

    @property
    def whole(self) -> int:
        return sum(self)


class TierRow(NamedTuple):
    name: str
    partitions: int
    unknown: int
    """Partitions of which nobody tells where they begin and end."""
    shares: Shares
    """Of the others."""
    remote_bytes: int | None
    local_bytes: int | None
    """Of leaders."""
    copies_bytes: int | None
    """On the disks of all replicas, as they were asked last; None where that is older than the rest."""
    waiting_bytes: int | None
    waiting_segments: int | None
    waiting_ms: int | None
    known_wait_ms: int
    """Of those partitions whose leaders tell."""
    is_late: bool
    is_copied: bool
    is_fork: bool
    origin: str
    log_start: int | None
    """Of a topic with one partition; else see its own page."""
    local_start: int | None
    stopped: Mapping[int, str]
    """Partitions whose history is not kept up, and why; the first of them."""
    trouble: int
    """What is worst comes first."""


class TierPartitionRow(NamedTuple):
    partition: int
    log_start: int | None
    local_start: int | None
    tiered_end: int | None
    end: int | None
    shares: Shares | None
    remote_bytes: int | None
    local_bytes: int | None
    waiting_bytes: int | None
    known_wait_ms: int
    is_late: bool
    stopped: str


def tier_row(seen: Snapshot, name: str, tier: TierSeen) -> TierRow:
    shares = [shares_of(each) for each in tier.partitions]
    known = [each for each in shares if each is not None]
    single = tier.partitions[0].offsets if len(tier.partitions) == 1 else None
    topic = seen.topics.get(name)
    is_late = tier.known_wait_ms > LATE_MS
    unknown = len(shares) - len(known)
    return TierRow(
        name,
        len(shares),
        unknown,
        _together(known),
        tier.remote_bytes,
        tier.local_bytes,
        None if topic is None else _copies_bytes(topic, tier),
        tier.waiting_bytes,
        tier.waiting_segments,
        tier.waiting_ms,
        tier.known_wait_ms,
        is_late,
        tier.is_copied,
        tier.is_fork,
        tier.origin,
        None if single is None else single.log_start,
        None if single is None else single.local_start,
        dict(list(tier.stopped.items())[:MOST_STOPPED]),
        4 * bool(tier.stopped) + 2 * is_late + bool(unknown),
    )


def _copies_bytes(topic: TopicSeen, tier: TierSeen) -> int | None:
    """They are asked for once a minute. A sum that is smaller than what leaders have now is too old."""
    if topic.size_bytes is None or topic.replication_factor < 2:
        return None
    return topic.size_bytes if topic.size_bytes >= (tier.local_bytes or 0) else None


def shares_of(seen: PartitionTierSeen) -> Shares | None:
    """As `headrace tier status` counts them."""
    offsets = seen.offsets
    if offsets is None:
        return None
    whole = max(0, offsets.end - offsets.log_start)
    only_remote = min(offsets.only_remote, whole)
    only_local = min(max(0, offsets.only_local), whole - only_remote)
    waiting = min(seen.waiting or 0, only_local)
    return Shares(only_remote, whole - only_remote - only_local, waiting, only_local - waiting)


def _together(shares: Sequence[Shares]) -> Shares:
    return Shares(
        sum(each.only_remote for each in shares),
        sum(each.both for each in shares),
        sum(each.waiting for each in shares),
        sum(each.written for each in shares),
    )


def partition_row(seen: PartitionTierSeen) -> TierPartitionRow:
    offsets, led = seen.offsets, seen.led
    return TierPartitionRow(
        seen.partition,
        None if offsets is None else offsets.log_start,
        None if offsets is None else offsets.local_start,
        None if offsets is None else offsets.tiered_end,
        None if offsets is None else offsets.end,
        shares_of(seen),
        None if led is None else led.remote_bytes,
        None if led is None else led.local_bytes,
        None if led is None else led.waiting_bytes,
        0 if led is None else led.waiting_ms,
        led is not None and led.waiting_ms > LATE_MS,
        "" if led is None else led.stopped,
    )

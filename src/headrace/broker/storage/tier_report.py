"""How far the history of each partition that this broker leads is in the object store, for whoever asks for
`headrace.tier`. Made in slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.runtime.health_report import Figure
from headrace.config.tier_report import TIER, LedTier, topic_figure

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext
    from headrace.broker.tiering.history import PartitionHistory

_MEANS: Final = "partitions of a tiered topic that this broker leads, and how far each is in the object store"


async def tell_tier(context: RequestContext) -> list[Figure]:
    tiering, turns = context.tiering, context.runtime.turns
    if tiering is None:
        return []
    led: dict[str, list[LedTier]] = {}
    for history in tiering.led():
        if turns.is_over:
            await turns.next()
        partition = history.partition
        if partition.is_leader and partition.log.is_open:  # it may have changed meanwhile
            told = _told(history, context.runtime.clock.monotonic())
            led.setdefault(partition.topic_partition.topic, []).append(told)
    figures = (topic_figure(topic, sorted(each)) for topic, each in led.items())
    return [Figure(f"{TIER}.{name}", value, _MEANS) for name, value in figures]


def _told(history: PartitionHistory, now: float) -> LedTier:
    lag, manifest, log = history.lag(now), history.manifest, history.partition.log
    remote = None if not history.is_known else 0 if manifest is None else manifest.size
    return LedTier(
        history.partition.topic_partition.partition,
        remote,
        log.size_bytes,
        log.segments[-1].base_offset,
        lag.size,
        lag.segments,
        int(lag.age_seconds * 1000),
        history.machine.stopped or "",
    )

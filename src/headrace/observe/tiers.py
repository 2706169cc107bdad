"""How far tiered topics are in the object store: two questions to each leader of one, and its own report.

Where no topic is tiered nobody is asked. Which are is told with the other settings of topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client import broker_reports, configs
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.health import MIN_ISR, min_isr_in
from headrace.client.refusals import refusal
from headrace.client.tiering import EARLIEST_LOCAL, ENABLE, LATEST_TIERED
from headrace.config.tier_report import TIER, LedTier, read_tier_report
from headrace.config.tiering import FORK, ForkPoint, fork_point
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.ends import ask_offsets, slices

COPY_DISABLE: Final = "remote.log.copy.disable"
_ASKED: Final = (MIN_ISR, ENABLE, COPY_DISABLE, FORK)


class TieredTopic(NamedTuple):
    """What a topic is set to that has its history in an object store."""

    is_copied: bool
    fork: ForkPoint | None


class TopicSettings(NamedTuple):
    min_isr: Mapping[str, int]
    tiered: Mapping[str, TieredTopic]


class TierOffsets(NamedTuple):
    local_start: int
    latest_tiered: int
    """-1 where nothing is in the store."""


class Tiers(NamedTuple):
    """Of a look."""

    topics: Mapping[str, TieredTopic]
    offsets: Mapping[TopicPartition, TierOffsets] = {}
    """Of those that could be asked."""
    led: Mapping[TopicPartition, LedTier] = {}
    """Of those whose leaders tell."""
    untold: Mapping[int, str] = {}
    """Leaders that tell nothing of bytes, and why."""


async def ask_settings(cluster: Cluster, names: Sequence[str]) -> TopicSettings:
    resources = [configs.Resource(configs.ResourceType.TOPIC, name) for name in names]
    described = await configs.describe_many(cluster, resources, _ASKED)
    tiered = {}
    for resource, entries in described.items():
        told = {entry.name: entry.value or "" for entry in entries}
        if told.get(ENABLE) == "true":
            tiered[resource.name] = TieredTopic(
                told.get(COPY_DISABLE) != "true", fork_point(told.get(FORK, ""))
            )
    return TopicSettings(min_isr_in(described), tiered)


async def ask_tiers(
    cluster: Cluster, topics: Mapping[str, TieredTopic], led: Mapping[int, Sequence[TopicPartition]]
) -> Tiers:
    """`led`: by broker, of those brokers that answer."""
    tiered = {
        number: theirs
        for number, each in led.items()
        if (theirs := [place for place in each if place.topic in topics])
    }
    offsets: dict[TopicPartition, TierOffsets] = {}
    reports: dict[TopicPartition, LedTier] = {}
    untold: dict[int, str] = {}

    async def ask_places(broker_id: int, places: Sequence[TopicPartition]) -> None:
        try:
            for some in slices(places):
                local = await ask_offsets(cluster, broker_id, some, EARLIEST_LOCAL)
                ends = await ask_offsets(cluster, broker_id, some, LATEST_TIERED)
                offsets.update(
                    (each, TierOffsets(local[each], ends[each]))
                    for each in some
                    if local.get(each, -1) >= 0 and each in ends
                )
        except ClientFailure as error:
            untold[broker_id] = str(error)

    async def ask_report(broker_id: int) -> None:
        told = await _report(cluster, broker_id)
        if isinstance(told, Unknown):
            untold.setdefault(broker_id, told.reason)
        else:
            reports.update(told)

    await asyncio.gather(
        *(ask_places(number, places) for number, places in tiered.items()), *map(ask_report, tiered)
    )
    return Tiers(topics, offsets, reports, untold)


async def _report(cluster: Cluster, broker_id: int) -> Mapping[TopicPartition, LedTier] | Unknown:
    told = await broker_reports.ask(cluster, broker_id, TIER, cluster.request_timeout)
    if told is None:
        return Unknown("it does not answer")
    if told.error_code:
        return Unknown(str(refusal(told.error_code, f"broker {broker_id}", told.error_message)))
    if not told.figures:
        return Unknown("it does not tell how much lies where: it is Apache Kafka, or of an older version")
    try:
        return read_tier_report(told.figures)
    except ValueError as error:
        return Unknown(str(error))

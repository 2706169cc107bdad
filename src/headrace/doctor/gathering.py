"""Asks a cluster for the facts: each question once, for everything together.

What a user may not ask, or a broker does not answer, becomes an Unknown with the reason. Only a cluster that
cannot be asked at all is an error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from headrace.audit.event import DEFAULT_TOPIC as EVENTS
from headrace.audit.verdict import DEFAULT_TOPIC as VERDICTS
from headrace.client import configs, health, links, log_dirs
from headrace.client.broker_health import BrokerHealth, ask_brokers
from headrace.client.cluster import Cluster
from headrace.client.configs import ConfigEntry, ConfigSource, Resource, ResourceType
from headrace.client.errors import ApiMissing, ClientFailure, Refused
from headrace.client.health import ClusterView
from headrace.client.links import LinkView
from headrace.client.log_dirs import LogDirectory
from headrace.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from headrace.client.open_transactions import LONGEST_TRANSACTION_MS, OpenTransaction, open_transactions
from headrace.client.refusals import code_name
from headrace.client.topics import TopicState, list_topics
from headrace.config.health import CLOCK_MS
from headrace.core.ids import TopicPartition
from headrace.doctor.facts import HOUR_MS, NEARLY, Audit, Clock, Ends, Facts, Setting, kept_ms
from headrace.doctor.group_facts import GroupQuestions
from headrace.doctor.model import Unknown
from headrace.doctor.protection import in_cluster
from headrace.doctor.tails import last_records
from headrace.doctor.tails import to_read as tails_to_read

T = TypeVar("T")

TOPIC_SETTINGS: Final = (
    "cleanup.policy",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "unclean.leader.election.enable",
)


async def gather(cluster: Cluster, look_seconds: float) -> Facts:
    """`look_seconds` lie between two looks at groups, while everything else is asked."""
    view = await health.describe_cluster(cluster)
    topics = await list_topics(cluster, internal=True)
    groups = GroupQuestions(cluster)
    began = time.monotonic()
    first_look = await attempt("DescribeGroups", groups.look())
    facts = await _gather_most(cluster, view, topics, groups)
    if isinstance(first_look, Unknown):
        return facts._replace(groups=first_look, looks=first_look)
    if first_look:
        await asyncio.sleep(max(0.0, began + look_seconds - time.monotonic()))
    second_look = await attempt("DescribeGroups", groups.look())
    looks = second_look if isinstance(second_look, Unknown) else [first_look, second_look]
    return facts._replace(looks=looks, look_seconds=time.monotonic() - began)


async def _gather_most(
    cluster: Cluster, view: ClusterView, topics: list[TopicState], questions: GroupQuestions
) -> Facts:
    alive = [broker.broker_id for broker in view.brokers if broker.alive]
    brokers, clocks = await _ask_brokers(cluster, alive)
    answering = [number for number, each in brokers.items() if each.answers]
    now_ms = time.time_ns() // 1_000_000
    facts = Facts(
        now_ms,
        view,
        topics,
        await attempt("cluster status", _judged(cluster)),
        brokers,
        await attempt("DescribeConfigs of brokers", _settings(cluster, answering)),
        await attempt("DescribeConfigs of topics", _topic_settings(cluster, topics)),
        await attempt("DescribeLogDirs", _directories(cluster, answering)),
        clocks,
        await attempt("OffsetFetch", questions.facts()),
    )
    led = _led(topics)
    user_led = _led(facts.user_topics)
    ends = await attempt("ListOffsets", _ends(cluster, user_led))
    hours = dict.fromkeys(_committed(facts), now_ms - HOUR_MS)
    facts = facts._replace(
        ends=ends,
        nearly_lost=await attempt("ListOffsets", _first_since(cluster, _nearly_lost_times(facts))),
        an_hour_ago=await attempt("ListOffsets", _first_since(cluster, hours)),
    )
    if not isinstance(ends, Unknown):
        tails = tails_to_read(facts)
        facts = facts._replace(last_records=await attempt("Fetch", last_records(cluster, tails, ends)))
    return facts._replace(
        hanging=await attempt("DescribeProducers", _hanging(cluster, led, now_ms)),
        protection=await attempt("headrace.security", in_cluster(cluster)),
        links=await attempt("ListConfigResources", _links(cluster, facts)),
        audit=await attempt("ListOffsets", _audit(cluster, topics)),
    )


async def _links(cluster: Cluster, facts: Facts) -> list[LinkView]:
    """Of Headrace's own brokers, which tell figures; others have none."""
    if not any(each.figures for each in facts.brokers.values()):
        return []
    return [await links.describe(cluster, topic) for topic in await links.names(cluster)]


async def attempt(what: str, question: Awaitable[T]) -> T | Unknown:
    try:
        return await question
    except Refused as error:
        is_denied = code_name(error.code).endswith("AUTHORIZATION_FAILED")
        return Unknown(f"{what} denied: {error}" if is_denied else f"{what}: {error}")
    except ApiMissing:
        return Unknown(f"{what}: these brokers do not have it")
    except ClientFailure as error:
        return Unknown(f"{what}: {error}")


async def _judged(cluster: Cluster) -> health.Health:
    return health.judge(await health.gather(cluster))


async def _ask_brokers(
    cluster: Cluster, alive: Sequence[int]
) -> tuple[dict[int, BrokerHealth], dict[int, Clock]]:
    """One after the other: the shorter the question takes, the more it says of the clock."""
    told: dict[int, BrokerHealth] = {}
    clocks = {}
    for broker_id in alive:
        before = time.time_ns() // 1_000_000
        told |= await ask_brokers(cluster, [broker_id])
        after = time.time_ns() // 1_000_000
        clock = told[broker_id].figures.get(CLOCK_MS, "")
        if clock.isdecimal():
            clocks[broker_id] = Clock(int(clock) - after, int(clock) - before)
    return told, clocks


async def _settings(cluster: Cluster, alive: Sequence[int]) -> dict[int, dict[str, Setting]]:
    resources = [Resource(ResourceType.BROKER, str(number)) for number in alive]
    answers = await asyncio.gather(*(configs.describe_configs(cluster, each) for each in resources))
    return {
        number: {
            entry.name: Setting(
                entry.value,
                entry.source != ConfigSource.DEFAULT,
                entry.sensitive,
                entry.source == ConfigSource.BROKER,
            )
            for entry in entries
        }
        for number, entries in zip(alive, answers, strict=True)
    }


async def _topic_settings(cluster: Cluster, topics: Sequence[TopicState]) -> dict[str, dict[str, Setting]]:
    resources = [Resource(ResourceType.TOPIC, topic.name) for topic in topics]
    described = await configs.describe_many(cluster, resources, TOPIC_SETTINGS)
    return {resource.name: _of_topic(entries) for resource, entries in described.items()}


def _of_topic(entries: Sequence[ConfigEntry]) -> dict[str, Setting]:
    return {entry.name: Setting(entry.value, entry.source == ConfigSource.TOPIC) for entry in entries}


async def _directories(cluster: Cluster, alive: Sequence[int]) -> dict[int, list[LogDirectory]]:
    answers = await asyncio.gather(*(log_dirs.describe_log_dirs(cluster, number) for number in alive))
    return dict(zip(alive, answers, strict=True))


def _led(topics: Sequence[TopicState]) -> list[TopicPartition]:
    """Whoever leads nothing cannot be asked, and those partitions are findings already."""
    return [
        TopicPartition(topic.name, state.partition)
        for topic in topics
        for state in topic.partitions
        if state.leader >= 0 and state.leader not in state.offline
    ]


async def _ends(cluster: Cluster, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Ends]:
    first = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    last = await list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    return {each: Ends(first[each].offset, last[each].offset) for each in partitions}


def _committed(facts: Facts) -> list[TopicPartition]:
    """By any group, and still there."""
    if isinstance(facts.groups, Unknown):
        return []
    there = set(_led(facts.user_topics))
    return sorted({each for group in facts.groups.values() for each in group.committed if each in there})


def _nearly_lost_times(facts: Facts) -> dict[TopicPartition, int]:
    if isinstance(facts.topic_settings, Unknown):
        return {}
    times = {}
    for partition in _committed(facts):
        retention_ms = kept_ms(facts.topic_settings.get(partition.topic, {}))
        if retention_ms is not None:
            times[partition] = facts.now_ms - int(retention_ms * NEARLY)
    return times


async def _first_since(cluster: Cluster, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The first offset with a time as late as that; the end, where all records are older."""
    if not times:
        return {}
    found = await list_offsets(cluster, times)
    older = [partition for partition, place in found.items() if place.offset < 0]
    ends = await list_offsets(cluster, dict.fromkeys(older, LATEST))
    return {
        partition: ends[partition].offset if partition in ends else place.offset
        for partition, place in found.items()
    }


async def _hanging(
    cluster: Cluster, partitions: Collection[TopicPartition], now_ms: int
) -> list[OpenTransaction]:
    silent_since_ms = now_ms - LONGEST_TRANSACTION_MS
    found = await open_transactions(cluster, partitions, silent_since_ms=silent_since_ms)
    return [each for each in found if each.hangs]


async def _audit(cluster: Cluster, topics: Sequence[TopicState]) -> Audit | None:
    if not any(topic.name == EVENTS for topic in topics):
        return None
    times = await list_offsets(
        cluster,
        {each: MAX_TIMESTAMP for each in _led(topics) if each.topic in (EVENTS, VERDICTS)},
    )

    def last(topic: str) -> int | None:
        told = [place.timestamp for each, place in times.items() if each.topic == topic]
        return max((moment for moment in told if moment >= 0), default=None)

    return Audit(last(EVENTS), last(VERDICTS))

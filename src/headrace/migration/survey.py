"""What there is at the source and at the target, asked for the plan. Nothing is judged or changed."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from headrace.client import acls, admin, groups, health, links, log_dirs, transactions
from headrace.client.cluster import Cluster
from headrace.client.errors import ApiMissing, ClientFailure, Refused
from headrace.client.group_offsets import committed_offsets
from headrace.client.links import SourceTopic
from headrace.client.topics import TopicState, list_topics
from headrace.core.ids import TopicPartition
from headrace.migration.group_plan import is_wanted
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchRequest
from headrace.security.acl import AclRule


class SurveyedTopic(NamedTuple):
    source: SourceTopic
    bytes: int
    """Of its leaders' files, one replica of each partition."""
    taken: str | None
    """Why a topic of this name cannot be made at the target."""


class SurveyedGroup(NamedTuple):
    group_id: str
    kind: str
    state: str
    partitions: int
    """Of these topics, with a committed offset."""
    state_here: str | None
    """At the target; None where it has none."""


class Rules(NamedTuple):
    rules: list[AclRule]
    unknown: str | None
    """Why nobody says."""


class Survey(NamedTuple):
    source_cluster_id: str
    target_cluster_id: str
    fetch_version: int
    topics: list[SurveyedTopic]
    internal: list[str]
    """Topics of the brokers that a pattern matches: they are never copied."""
    unmatched: list[str]
    """Patterns that match nothing."""
    others: list[str]
    """Topics of the source that no pattern matches."""
    groups: list[SurveyedGroup]
    transactions: list[transactions.ListedTransaction]
    rules_there: Rules
    rules_here: Rules
    replicas: int
    """Of each new partition, if the factor that is asked for can be."""
    usable_bytes: int | None
    """At the target, all log directories together."""


async def survey(
    source: Cluster,
    target: Cluster,
    patterns: list[str],
    group_patterns: list[str],
    replication_factor: int,
) -> Survey:
    await links.names(target)  # it is a Headrace of a version that has links, or that is said now
    there, here = await health.describe_cluster(source), await health.describe_cluster(target)
    fetch = (await source.any_broker()).version_for(FetchRequest)
    every = await list_topics(source, internal=True)
    chosen = [topic for topic in every if any(fnmatchcase(topic.name, each) for each in patterns)]
    names = [topic.name for topic in chosen if not topic.internal]
    topics = [
        await _topic(source, target, topic, replication_factor) for topic in chosen if not topic.internal
    ]
    alive = [broker.broker_id for broker in here.brokers if broker.alive]
    return Survey(
        there.cluster_id,
        here.cluster_id,
        fetch,
        topics,
        [topic.name for topic in chosen if topic.internal],
        [each for each in patterns if not any(fnmatchcase(topic.name, each) for topic in every)],
        [topic.name for topic in every if topic not in chosen and not topic.internal],
        await _groups(source, target, names, group_patterns),
        await _transactions(source),
        await _rules(source),
        await _rules(target),
        replication_factor if replication_factor > 0 else 1,
        await _usable(target, alive),
    )


async def _topic(
    source: Cluster, target: Cluster, topic: TopicState, replication_factor: int
) -> SurveyedTopic:
    found = await links.look_at_source(source, topic.name)
    return SurveyedTopic(found, await _bytes(source, topic), await _taken(target, found, replication_factor))


async def _taken(target: Cluster, found: SourceTopic, replication_factor: int) -> str | None:
    """The broker is asked whether it would make the topic: it knows all rules of names and settings."""
    values = await links.values_of(target, found.name)
    if values:
        return f"there is a link of that name already, {values.get(links.STATE)}"
    try:
        await admin.create_topic(
            target,
            found.name,
            partitions=found.partitions,
            replication_factor=replication_factor,
            configs=found.settings,
            validate_only=True,
        )
    except Refused as error:
        return str(error)
    return None


async def _bytes(source: Cluster, topic: TopicState) -> int:
    holders: dict[int, list[TopicPartition]] = {}
    for state in topic.partitions:
        holders.setdefault(state.leader, []).append(TopicPartition(topic.name, state.partition))
    holders.pop(-1, None)
    files = await log_dirs.replica_files(source, holders)
    return sum(each.size for each in files.values())


async def _groups(
    source: Cluster, target: Cluster, topics: list[str], patterns: list[str]
) -> list[SurveyedGroup]:
    listed = [each for each in await groups.list_groups(source) if is_wanted(each.group_id, patterns)]
    here = {each.group_id: each.state for each in await groups.list_groups(target)}
    # Only groups of consumers have committed offsets; a coordinator refuses to speak of others' ones.
    readable = [each.group_id for each in listed if each.kind not in ("share", "streams")]
    committed = await committed_offsets(source, readable)
    found = []
    for each in listed:
        count = sum(partition.topic in topics for partition in committed.get(each.group_id, {}))
        if count or each.group_id not in committed:
            found.append(SurveyedGroup(each.group_id, each.kind, each.state, count, here.get(each.group_id)))
    return found


async def _transactions(source: Cluster) -> list[transactions.ListedTransaction]:
    try:
        return await transactions.list_transactions(source)
    except (ApiMissing, Refused):
        return []


async def _rules(cluster: Cluster) -> Rules:
    try:
        return Rules(await acls.describe_acls(cluster), None)
    except Refused as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            return Rules([], "no authorizer: everybody may do everything")
        return Rules([], str(error))
    except ClientFailure as error:
        return Rules([], str(error))


async def _usable(target: Cluster, alive: list[int]) -> int | None:
    directories = [
        each for found in (await log_dirs.directories_of(target, alive)).values() for each in found
    ]
    known = [each.usable_bytes for each in directories if each.usable_bytes >= 0]
    return sum(known) if known else None

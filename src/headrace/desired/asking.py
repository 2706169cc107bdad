"""What a cluster has of what a file owns, and who uses a topic: by few requests for many topics."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.client import acls, groups, many_links, many_topics, offsets, quotas, reassignments, users
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.group_offsets import committed_offsets
from headrace.client.topics import TopicState, describe_topics, list_topics
from headrace.core.ids import TopicPartition
from headrace.desired.links import told
from headrace.desired.ownership import Kind, Ownership
from headrace.desired.present import Present, PresentLink, PresentTopic, Use
from headrace.desired.settings import OF_MOVES


async def ask_present(cluster: Cluster, owns: Ownership) -> Present:
    """Nothing is asked about kinds that are not owned: who asks may lack the right to."""
    links = await _links(cluster, owns)
    asks_topics = Kind.TOPICS in owns or Kind.LINKS in owns
    states = await list_topics(cluster) if asks_topics else []
    topics = await _topics(cluster, [each for each in states if owns.topic(each.name) or each.name in links])
    found = {name: PresentLink(values, topics.get(name)) for name, values in links.items()}
    copies = {name for name, each in found.items() if not each.is_promoted}
    return Present(
        racks=await _racks(cluster),
        topics={name: each for name, each in topics.items() if owns.topic(name) and name not in copies},
        links=found,
        unlinked=frozenset(each.name for each in states if owns.link(each.name)) - links.keys(),
        users={each.name: each.iterations for each in await users.list_users(cluster) if owns.user(each.name)}
        if Kind.USERS in owns
        else {},
        acls=frozenset(each for each in await acls.describe_acls(cluster) if owns.principal(each.principal))
        if Kind.ACLS in owns
        else frozenset(),
        quotas={
            each.entity: each.values
            for each in await quotas.describe_quotas(cluster)
            if owns.quota(each.entity)
        }
        if Kind.QUOTAS in owns
        else {},
    )


async def _racks(cluster: Cluster) -> dict[int, str | None]:
    reply = await cluster.retried(lambda: cluster.metadata([]))
    return {node.node_id: node.rack for node in reply.brokers}


async def _links(cluster: Cluster, owns: Ownership) -> dict[str, dict[str, str]]:
    """In the words of a file."""
    if Kind.LINKS not in owns:
        return {}
    names = await many_links.linked_topics(cluster)
    if names is None:
        raise ClientFailure(
            "these brokers have no links, and the file owns some", "links are Headrace's own: take them out"
        )
    values = await many_links.link_values(cluster, [name for name in names if owns.link(name)])
    return {name: told(each) for name, each in values.items()}


async def _topics(cluster: Cluster, states: Sequence[TopicState]) -> dict[str, PresentTopic]:
    """Without those that brokers keep for themselves."""
    if not states:
        return {}
    settings = await many_topics.topic_settings(cluster, [state.name for state in states])
    moving = await reassignments.list_reassignments(cluster)
    found = {}
    for state in states:
        if state.name not in settings:
            continue  # deleted meanwhile
        replicas = {}
        for each in state.partitions:
            move = moving.get(TopicPartition(state.name, each.partition))
            removing = () if move is None else move.removing
            replicas[each.partition] = tuple(broker for broker in each.replicas if broker not in removing)
        found[state.name] = PresentTopic(
            replicas,
            {name: value for name, value in settings[state.name].items() if name not in OF_MOVES},
            any(TopicPartition(state.name, index) in moving for index in replicas),
        )
    return found


async def ask_topic(cluster: Cluster, name: str) -> PresentTopic | None:
    """One topic, asked for by whoever may describe that one. Nothing is said of moves, which are the whole
    cluster's. None: the brokers keep it for themselves."""
    (state,) = await describe_topics(cluster, [name])
    if state.internal:
        return None
    settings = (await many_topics.topic_settings(cluster, [name])).get(name, {})
    return PresentTopic(
        {each.partition: tuple(each.replicas) for each in state.partitions},
        {setting: value for setting, value in settings.items() if setting not in OF_MOVES},
    )


async def ask_uses(cluster: Cluster, names: Collection[str]) -> dict[str, Use]:
    """Of topics that somebody wants to delete."""
    if not names:
        return {}
    partitions = [each for name in names for each in await offsets.partitions_of(cluster, name)]
    records = dict.fromkeys(names, 0)
    for partition, (first, last) in (await offsets.ends_of(cluster, partitions)).items():
        records[partition.topic] += last - first
    readers: dict[str, set[str]] = {name: set() for name in names}
    listed = [each.group_id for each in await groups.list_groups(cluster)]
    for group, committed in (await committed_offsets(cluster, listed, partitions)).items():
        for partition in committed:
            readers[partition.topic].add(group)
    for group, described in (await groups.describe_groups(cluster, listed)).items():
        for partition in {} if isinstance(described, Refused) else described.owners:
            if partition.topic in readers:
                readers[partition.topic].add(group)
    return {name: Use(records[name], tuple(sorted(readers[name]))) for name in names}

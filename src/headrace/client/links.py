"""Links: topics that the brokers themselves copy from another cluster. Made, looked at, promoted, removed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from headrace.client import admin, health
from headrace.client.cluster import METADATA_AT_MOST, Cluster
from headrace.client.configs import ConfigSource, Resource, ResourceType, alter_configs, describe_configs
from headrace.client.errors import ClientFailure, Refused
from headrace.client.refusals import refusal
from headrace.client.topics import describe_topics, list_topics
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import DescribeConfigsResponse
from headrace.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from headrace.protocol.messages.list_config_resources_response import ListConfigResourcesResponse
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse

BOOTSTRAP: Final = "source.bootstrap.servers"
CLIENT_CONFIG: Final = "source.client.config"
SOURCE_TOPIC: Final = "source.topic"
SOURCE_TOPIC_ID: Final = "source.topic.id"
SOURCE_CLUSTER_ID: Final = "source.cluster.id"
GROUPS: Final = "groups"
STATE: Final = "state"
ACTIVE: Final = "ACTIVE"
PAUSED: Final = "PAUSED"
PROMOTING: Final = "PROMOTING"
PROMOTED: Final = "PROMOTED"
_STOPPED: Final = "stopped."
_OPENED: Final = "opened."
_STATUS: Final = "status."
_SOURCE_ERROR: Final = "source.error"
_SET: Final = 0
_DELETE: Final = 1
_FIRST_WITH_TYPES: Final = 1
_OWN: Final = frozenset(
    (
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "flush.messages",
        "flush.ms",
    )
)
"""They are about the brokers that hold a topic, not about what is in it."""


class SourceTopic(NamedTuple):
    name: str
    topic_id: UUID
    cluster_id: str
    partitions: int
    settings: dict[str, str]
    left_out: list[str]
    """Settings of the topic that this version of Headrace does not have."""
    of_its_brokers: list[str]
    """Settings of the topic, as name=value, that are about the brokers over there."""


class LinkedPartition(NamedTuple):
    partition: int
    end: int
    """How far it is committed here; -1 if nobody says."""
    source_end: int
    lag: int
    """Records; -1 while it is not known."""
    lost: int
    """Records that were deleted at the source before this leader could copy them."""
    stopped: str | None
    opened: int | None
    error: str | None


class LinkView(NamedTuple):
    topic: str
    state: str
    values: dict[str, str]
    partitions: list[LinkedPartition]
    errors: list[str]
    """Why brokers do not reach the source."""

    @property
    def lag(self) -> int:
        """Of all partitions; -1 while one is not known."""
        lags = [each.lag for each in self.partitions]
        return -1 if not lags or min(lags) < 0 else sum(lags)

    @property
    def is_stopped(self) -> bool:
        return any(each.stopped for each in self.partitions)

    @property
    def state_in_words(self) -> str:
        return "STOPPED" if self.is_stopped and self.state == ACTIVE else self.state


def _resource(topic: str) -> Resource:
    return Resource(ResourceType.LINK, topic)


async def look_at_source(source: Cluster, topic: str) -> SourceTopic:
    """What there is to copy."""
    reply = await source.ask_any(
        MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False),
        MetadataResponse,
        at_most=METADATA_AT_MOST,
    )
    (found,) = reply.topics
    if found.error_code:
        raise refusal(found.error_code, f"topic {topic} at the source")
    if found.topic_id.int == 0:
        raise ClientFailure(
            f"topic {topic} has no id at the source",
            "a link needs topic ids, which Apache Kafka has from 3.1 on",
        )
    settings: dict[str, str] = {}
    left_out: list[str] = []
    of_its_brokers: list[str] = []
    for entry in await describe_configs(source, Resource(ResourceType.TOPIC, topic)):
        if entry.source in (ConfigSource.DEFAULT, ConfigSource.UNKNOWN) or entry.value is None:
            continue
        if entry.name in _OWN:
            if entry.source == ConfigSource.TOPIC:
                of_its_brokers.append(f"{entry.name}={entry.value}")
        elif entry.name in TOPIC_PROPERTIES:
            settings[entry.name] = entry.value
        elif entry.source == ConfigSource.TOPIC:
            left_out.append(entry.name)
    cluster_id = reply.cluster_id or ""
    return SourceTopic(
        topic, found.topic_id, cluster_id, len(found.partitions), settings, left_out, of_its_brokers
    )


def values_for(
    found: SourceTopic, bootstrap: str, client_config: str | None, groups: Sequence[str]
) -> dict[str, str | None]:
    """Of a new link."""
    values: dict[str, str | None] = {
        BOOTSTRAP: bootstrap,
        SOURCE_TOPIC: found.name,
        SOURCE_TOPIC_ID: str(found.topic_id),
        SOURCE_CLUSTER_ID: found.cluster_id,
        STATE: ACTIVE,
    }
    if client_config is not None:
        values[CLIENT_CONFIG] = client_config
    if groups:
        values[GROUPS] = ",".join(groups)
    return values


async def create(
    cluster: Cluster,
    found: SourceTopic,
    topic: str,
    *,
    bootstrap: str,
    client_config: str | None = None,
    groups: Sequence[str] = (),
    replication_factor: int = -1,
    settings: Mapping[str, str] | None = None,
) -> None:
    """The link first, then its topic, which is a copy from its first moment on. Asked for again, it goes on
    where it was left."""
    values = values_for(found, bootstrap, client_config, groups)
    if found.cluster_id and found.cluster_id == (await health.describe_cluster(cluster)).cluster_id:
        raise ClientFailure(
            f"{bootstrap} is this cluster itself", "a link copies another cluster: name that with --source"
        )
    known = {state.name for state in await list_topics(cluster)}
    before = await values_of(cluster, topic) if topic in known else {}
    if before:
        same = all(before.get(name) == value for name, value in values.items() if name != STATE)
        if same:
            return
    await alter(cluster, topic, values)
    try:
        await admin.create_topic(
            cluster,
            topic,
            partitions=found.partitions,
            replication_factor=replication_factor,
            configs={**found.settings, **(settings or {})},
        )
    except Refused as error:
        if error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
            return  # this very creation, when it was asked for before
        await alter(cluster, topic, {STATE: None})
        raise


async def alter(cluster: Cluster, topic: str, values: Mapping[str, str | None]) -> None:
    await alter_configs(cluster, _resource(topic), values)


async def change(cluster: Cluster, topic: str, values: Mapping[str, str | None]) -> None:
    """Of a link that is there and not promoted."""
    known = await values_of(cluster, topic)
    if not known:
        raise no_link(topic)
    if known.get(STATE) in (PROMOTING, PROMOTED):
        raise ClientFailure(
            f"topic {topic} is promoted: it copies no more, and cannot again",
            "to copy the source anew, `headrace link create` under another name",
        )
    await alter(cluster, topic, values)


def no_link(topic: str) -> ClientFailure:
    return ClientFailure(f"topic {topic} has no link", "`headrace link list` shows those that there are")


async def values_of(cluster: Cluster, topic: str) -> dict[str, str]:
    """What the metadata says of a link; nothing if there is none."""
    connection = await cluster.any_broker()
    return await _ask(cluster, topic, connection) or {}


async def _ask(cluster: Cluster, topic: str, connection: Any) -> dict[str, str] | None:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=ResourceType.LINK, resource_name=topic, configuration_keys=None
            )
        ]
    )
    reply = await connection.request(request, DescribeConfigsResponse, timeout=cluster.request_timeout)
    (result,) = reply.results
    if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    if result.error_code:
        raise refusal(result.error_code, f"the link of {topic}", result.error_message)
    return {entry.name: entry.value for entry in result.configs if entry.value is not None}


async def names(cluster: Cluster) -> list[str]:
    connection = await cluster.any_broker()
    if connection.version_for(ListConfigResourcesRequest) < _FIRST_WITH_TYPES:
        raise ClientFailure("these brokers have no links", "links are Headrace's own")
    request = ListConfigResourcesRequest(resource_types=[ResourceType.LINK])
    reply = await connection.request(request, ListConfigResourcesResponse, timeout=cluster.request_timeout)
    if reply.error_code:
        raise refusal(reply.error_code, "the list of links")
    return sorted(each.resource_name for each in reply.config_resources)


async def describe(cluster: Cluster, topic: str) -> LinkView:
    """What the metadata says, and how far each leader is. Asks all brokers that are there."""
    told: list[dict[str, str]] = []
    for broker in (await health.describe_cluster(cluster)).brokers:
        if not broker.alive:
            continue
        try:
            answer = await _ask(cluster, topic, await cluster.broker(broker.broker_id))
        except ClientFailure:
            continue  # it has just gone; another leads what it led
        if answer is not None:
            told.append(answer)
    if not told:
        raise no_link(topic)
    (state,) = await describe_topics(cluster, [topic])
    return view_of(topic, told, [each.partition for each in state.partitions])


def view_of(topic: str, told: Sequence[Mapping[str, str]], partitions: Sequence[int]) -> LinkView:
    """Of the answers of all brokers. Each leader speaks for its partitions."""
    values: dict[str, str] = {}
    for answer in told:
        values.update(answer)
    rows = [_row(values, partition) for partition in partitions]
    errors = sorted({answer[_SOURCE_ERROR] for answer in told if _SOURCE_ERROR in answer})
    own = {
        name: value
        for name, value in values.items()
        if not name.startswith((_STOPPED, _OPENED, _STATUS)) and name not in (_SOURCE_ERROR, STATE)
    }
    return LinkView(topic, values.get(STATE, PAUSED), own, rows, errors)


def _row(values: Mapping[str, str], partition: int) -> LinkedPartition:
    status: dict[str, Any] = json.loads(values.get(f"{_STATUS}{partition}", "{}"))
    opened = values.get(f"{_OPENED}{partition}")
    code = status.get("error_code")
    return LinkedPartition(
        partition,
        status.get("end", -1),
        status.get("source_end", -1),
        status.get("lag", -1),
        status.get("lost", 0),
        values.get(f"{_STOPPED}{partition}"),
        None if opened is None else int(opened),
        status.get("promotion") or (None if code is None else ErrorCode(code).name),
    )


async def delete(cluster: Cluster, topic: str) -> None:
    """The link with its topic. One that is promoted is an ordinary topic, and stays."""
    values = await values_of(cluster, topic)
    if not values:
        raise no_link(topic)
    if values.get(STATE) in (PROMOTING, PROMOTED):
        raise ClientFailure(
            f"topic {topic} is promoted: it is an ordinary topic now",
            f"`headrace topic delete {topic}` deletes it",
        )
    if topic in {state.name for state in await list_topics(cluster)}:
        await admin.delete_topics(cluster, [topic])
    else:
        await alter(cluster, topic, {STATE: None})

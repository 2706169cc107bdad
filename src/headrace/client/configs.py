"""Dynamic configuration of topics, groups and brokers, over the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.connection import Connection
from headrace.client.refusals import refusal
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

_DESCRIBE_AT_MOST: Final = 4
_RESOURCES_AT_ONCE: Final = 500
_UNITS_MS: Final = {"ms": 1, "seconds": 1000, "minutes": 60_000, "hours": 3_600_000}
"""By the last word of a property's name."""
_SET: Final = 0
_DELETE: Final = 1


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    GROUP = 32
    LINK = 100
    """Of Headrace: how a topic is copied from another cluster. Its name is the topic's."""


class ConfigSource(IntEnum):
    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    BROKER_DEFAULT = 3
    FILE = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Resource(NamedTuple):
    """What a configuration belongs to. The broker with an empty name stands for all brokers."""

    type: ResourceType
    name: str

    @property
    def words(self) -> str:
        if self.type is not ResourceType.BROKER:
            return f"{self.type.name.lower()} {self.name}"
        return f"broker {self.name}" if self.name else "the default of all brokers"


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool
    default: str | None
    """What it would be without any setting, where the broker says so."""
    documentation: str | None

    @property
    def source_name(self) -> str:
        try:
            return ConfigSource(self.source).name.lower().replace("_", "-")
        except ValueError:
            return str(self.source)


async def describe_configs(
    cluster: Cluster, resource: Resource, names: Sequence[str] | None = None
) -> list[ConfigEntry]:
    async def attempt() -> list[ConfigEntry]:
        connection = await _responsible(cluster, resource)
        (result,) = await _describe(cluster, connection, [resource], names, documentation=True)
        if result.error_code:
            raise refusal(result.error_code, resource.words, result.error_message)
        return _entries(result)

    return await cluster.retried(attempt)


async def describe_many(
    cluster: Cluster, topics: Sequence[Resource], names: Sequence[str]
) -> dict[Resource, list[ConfigEntry]]:
    """Some settings of many topics, from any broker. A topic that has gone meanwhile is left out."""
    found: dict[Resource, list[ConfigEntry]] = {}

    async def attempt(chunk: Sequence[Resource]) -> None:
        connection = await cluster.any_broker()
        for result in await _describe(cluster, connection, chunk, names, documentation=False):
            resource = Resource(ResourceType(result.resource_type), result.resource_name)
            if not result.error_code:
                found[resource] = _entries(result)
            elif result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise refusal(result.error_code, resource.words, result.error_message)

    for at in range(0, len(topics), _RESOURCES_AT_ONCE):
        chunk = topics[at : at + _RESOURCES_AT_ONCE]
        await cluster.retried(partial(attempt, chunk))
    return found


async def _describe(
    cluster: Cluster,
    connection: Connection,
    resources: Sequence[Resource],
    names: Sequence[str] | None,
    *,
    documentation: bool,
) -> list[DescribeConfigsResult]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=int(resource.type),
                resource_name=resource.name,
                configuration_keys=None if names is None else list(names),
            )
            for resource in resources
        ],
        include_synonyms=True,
        include_documentation=documentation,
    )
    reply = await connection.request(
        request, DescribeConfigsResponse, at_most=_DESCRIBE_AT_MOST, timeout=cluster.request_timeout
    )
    return reply.results


def _entries(result: DescribeConfigsResult) -> list[ConfigEntry]:
    entries = []
    for config in result.configs:
        defaults = [
            _in_unit_of(config.name, synonym.name, synonym.value)
            for synonym in config.synonyms
            if synonym.source == ConfigSource.DEFAULT
        ]
        entries.append(
            ConfigEntry(
                config.name,
                config.value,
                config.config_source,
                config.read_only,
                config.is_sensitive,
                defaults[0] if defaults else None,
                config.documentation,
            )
        )
    return sorted(entries)


def _in_unit_of(name: str, synonym: str, value: str | None) -> str | None:
    """What `synonym` has, said as `name` says it: 168 of log.retention.hours is 604800000 of retention.ms."""
    wanted, given = (_UNITS_MS.get(each.rpartition(".")[2]) for each in (name, synonym))
    if wanted is None or given is None or wanted == given or value is None or not value.isdecimal():
        return value
    return str(int(value) * given // wanted)


async def alter_configs(
    cluster: Cluster, resource: Resource, changes: Mapping[str, str | None], *, validate_only: bool = False
) -> None:
    """Set each name to its value; None takes the setting away."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=int(resource.type),
                resource_name=resource.name,
                configs=[
                    AlterableConfig(
                        name=name, config_operation=_DELETE if value is None else _SET, value=value
                    )
                    for name, value in changes.items()
                ],
            )
        ],
        validate_only=validate_only,
    )

    async def attempt() -> None:
        connection = await _responsible(cluster, resource)
        reply = await connection.request(
            request, IncrementalAlterConfigsResponse, timeout=cluster.request_timeout
        )
        for result in reply.responses:
            if result.error_code:
                raise refusal(result.error_code, resource.words, result.error_message)

    await cluster.retried(attempt)


async def _responsible(cluster: Cluster, resource: Resource) -> Connection:
    """A named broker speaks for itself. Of everything else the controller knows first: who has just changed a
    setting shall read what was set."""
    if resource.type is ResourceType.BROKER and resource.name.isdecimal():
        return await cluster.broker(int(resource.name))
    return await cluster.controller()
